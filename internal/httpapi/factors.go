package httpapi

import (
	"encoding/base64"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/service"
)

func completeLogin(x *exchange) error {
	challenge, proof, err := x.answerToChallenge()
	if err != nil {
		return err
	}
	if proofsIn(&proof) != 1 {
		return rolecall.Faults{{Code: "one-of", Detail: "must hold one of code, recoveryCode and passkey"}}.Err()
	}
	attempt, err := x.attempt()
	if err != nil {
		return err
	}
	signIn, err := x.server.service.CompleteSignIn(x.ctx, attempt, challenge, proof)
	if err != nil {
		return err
	}
	return x.signedIn(&signIn)
}

func beginEnrolment(x *exchange) error {
	challenge, err := x.challenge()
	if err != nil {
		return err
	}
	attempt, err := x.attempt()
	if err != nil {
		return err
	}
	enrolment, err := x.server.service.BeginEnrolment(x.ctx, attempt, challenge)
	if err != nil {
		return err
	}
	x.out = appendTOTPSecret(append(x.out, '{'), &enrolment.TOTPSecret)
	if enrolment.PublicKey != nil {
		x.out = append(x.out, ',')
		x.out = appendPublicKey(x.out, enrolment.PublicKey)
	}
	x.out = append(x.out, '}')
	return x.json(http.StatusOK)
}

func (x *exchange) answerToChallenge() (challenge secret.Token, proof service.Proof, err error) {
	var text string
	members := append([]member{{"challenge", true, readString(&text)}}, proofMembers(&proof)...)
	if err := x.decode(members...).err(noFaults); err != nil {
		return "", proof, err
	}
	challenge, err = parseChallenge(text)
	return challenge, proof, err
}

func (x *exchange) challenge() (secret.Token, error) {
	var text string
	if err := x.decode(member{"challenge", true, readString(&text)}).err(noFaults); err != nil {
		return "", err
	}
	return parseChallenge(text)
}

// parseChallenge returns the challenge; a text that cannot be one is one that is not
// known.
func parseChallenge(text string) (secret.Token, error) {
	challenge, ok := secret.ParseToken(text)
	if !ok {
		return "", rolecall.ErrChallengeInvalid
	}
	return challenge, nil
}

// proofMembers are how a body shows a second factor. Only one of the ways may be taken.
func proofMembers(p *service.Proof) []member {
	return []member{
		{"code", false, readString(&p.Code)},
		{"recoveryCode", false, readString(&p.RecoveryCode)},
		{"passkey", false, readDocument(&p.Passkey)},
	}
}

// proofsIn returns how many of the ways are taken.
func proofsIn(p *service.Proof) (shown int) {
	for _, is := range []bool{p.Code != "", p.RecoveryCode != "", p.Passkey != nil} {
		if is {
			shown++
		}
	}
	return shown
}

// readDocument reads an object as it was sent, for whoever knows what it means.
func readDocument(into *[]byte) reader {
	return func(d *decoder, pointer string, value jsontext.Value) {
		if value.Kind() != jsontext.KindBeginObject {
			d.faults.Add(pointer, "type", "must be an object")
			return
		}
		*into = value.Clone()
	}
}

func getFactors(x *exchange) error {
	own, err := x.server.service.Factors(x.ctx, x.call)
	if err != nil {
		return err
	}
	x.out = appendFactors(x.out, &own)
	return x.json(http.StatusOK)
}

func beginTOTP(x *exchange) error {
	begun, err := x.server.service.BeginTOTP(x.ctx, x.call)
	if err != nil {
		return err
	}
	x.out = append(appendTOTPSecret(append(x.out, '{'), &begun), '}')
	return x.json(http.StatusOK)
}

func confirmTOTP(x *exchange) error {
	code, err := x.code()
	if err != nil {
		return err
	}
	codes, err := x.server.service.ConfirmTOTP(x.ctx, x.call, code)
	if err != nil {
		return err
	}
	return x.recoveryCodes(codes)
}

func (x *exchange) code() (code string, err error) {
	err = x.decode(member{"code", true, readString(&code)}).err(noFaults)
	return code, err
}

func deleteTOTP(x *exchange) error {
	if err := x.server.service.RemoveTOTP(x.ctx, x.call); err != nil {
		return err
	}
	return x.nothing()
}

func makeRecoveryCodes(x *exchange) error {
	codes, err := x.server.service.MakeRecoveryCodes(x.ctx, x.call)
	if err != nil {
		return err
	}
	return x.recoveryCodes(codes)
}

// recoveryCodes answers with the codes, if there are any.
func (x *exchange) recoveryCodes(codes []secret.RecoveryCode) error {
	x.out = append(x.out, '{')
	if codes != nil {
		x.out = appendRecoveryCodes(x.out, codes)
	}
	x.out = append(x.out, '}')
	return x.json(http.StatusOK)
}

func resetFactors(x *exchange) error {
	if err := x.server.service.ResetFactors(x.ctx, x.call, x.in.user); err != nil {
		return err
	}
	return x.nothing()
}

func appendFactors(b []byte, own *service.OwnFactors) []byte {
	b = append(b, `{"totp":`...)
	if own.TOTP.Sealed == nil {
		b = append(b, "null"...)
	} else {
		b = append(b, `{"confirmedAt":`...)
		b = append(appendTime(b, own.TOTP.ConfirmedAt), '}')
	}
	b = append(b, `,"passkeys":`...)
	b = appendList(b, own.Passkeys, func(b []byte, key *rolecall.Passkey) []byte {
		return append(appendPasskey(append(b, '{'), key), '}')
	})
	b = append(b, `,"recoveryCodes":`...)
	b = strconv.AppendInt(b, int64(own.RecoveryCodes), 10)
	b = append(b, `,"demanded":`...)
	return append(strconv.AppendBool(b, own.Demanded), '}')
}

// appendPasskey appends the members of the passkey.
func appendPasskey(b []byte, key *rolecall.Passkey) []byte {
	b = append(b, `"id":"`...)
	b = base64.RawURLEncoding.AppendEncode(b, key.ID)
	b = append(b, `","name":`...)
	b = appendText(b, key.Name)
	b = append(b, `,"createdAt":`...)
	b = appendTime(b, key.CreatedAt)
	b = append(b, `,"lastUsedAt":`...)
	if key.LastUsedAt == 0 {
		return append(b, "null"...)
	}
	return appendTime(b, key.LastUsedAt)
}

// appendTOTPSecret appends the members of the secret.
func appendTOTPSecret(b []byte, s *service.TOTPSecret) []byte {
	b = append(b, `"secret":`...)
	b = appendText(b, s.Secret)
	b = append(b, `,"uri":`...)
	return appendText(b, s.URI)
}

// appendPublicKey appends the member for an authenticator.
func appendPublicKey(b, publicKey []byte) []byte {
	return append(append(b, `"publicKey":`...), publicKey...)
}

// appendRecoveryCodes appends the member that shows recovery codes.
func appendRecoveryCodes(b []byte, codes []secret.RecoveryCode) []byte {
	b = append(b, `"recoveryCodes":`...)
	return appendList(b, codes, func(b []byte, code *secret.RecoveryCode) []byte { return appendText(b, *code) })
}
