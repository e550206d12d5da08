package httpapi

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
)

// proofBody is how a body proves a second factor. At most one of the members is used.
type proofBody struct {
	Code         string     `json:"code" doc:"Six digits of an authenticator app."`
	RecoveryCode string     `json:"recoveryCode" doc:"An unused recovery code."`
	Passkey      credential `json:"passkey" doc:"The result of toJSON() of the credential that the browser returned."`
}

func (b *proofBody) proof() signin.Proof {
	return signin.Proof{Code: b.Code, RecoveryCode: b.RecoveryCode, Passkey: b.Passkey}
}

// count returns how many of the members are used.
func (b *proofBody) count() (n int) {
	for _, is := range []bool{b.Code != "", b.RecoveryCode != "", b.Passkey != nil} {
		if is {
			n++
		}
	}
	return n
}

type completeLoginBody struct {
	beginEnrolmentBody
	proofBody
}

type completeLoginRequest struct {
	Attempt access.Anonymous
	Body    completeLoginBody
}

func (s *Server) completeLogin(ctx context.Context, _ access.Caller, in *completeLoginRequest) (Response[signInBody], error) {
	challenge, err := parseToken(in.Body.Challenge, rolecall.ErrChallengeInvalid)
	if err != nil {
		return Response[signInBody]{}, err
	}
	if in.Body.count() != 1 {
		return Response[signInBody]{}, rolecall.Faults{{Code: "one-of", Detail: "must hold one of code, recoveryCode and passkey"}}.Err()
	}
	signIn, err := s.signin.CompleteSignIn(ctx, in.Attempt, challenge, in.Body.proof())
	return signedIn(&signIn), err
}

type beginEnrolmentBody struct {
	Challenge string `json:"challenge" required:"true" doc:"The challenge of the problem that the sign-in was answered with."`
}

type beginEnrolmentRequest struct {
	Attempt access.Anonymous
	Body    beginEnrolmentBody
}

// enrolmentBody is what to make a second factor of: a code of the secret, or a passkey.
type enrolmentBody struct {
	totpSecretBody
	PublicKey jsontext.Value `json:"publicKey,omitzero" doc:"For navigator.credentials.create. Absent where passkeys are not available."`
}

func (s *Server) beginEnrolment(ctx context.Context, _ access.Caller, in *beginEnrolmentRequest) (Response[enrolmentBody], error) {
	challenge, err := parseToken(in.Body.Challenge, rolecall.ErrChallengeInvalid)
	if err != nil {
		return Response[enrolmentBody]{}, err
	}
	enrolment, err := s.signin.BeginEnrolment(ctx, in.Attempt, challenge)
	return Response[enrolmentBody]{Body: enrolmentBody{newTOTPSecretBody(&enrolment.TOTPSecret), enrolment.PublicKey}}, err
}

// factorsBody are one's second factors, without their secrets.
type factorsBody struct {
	TOTP          *confirmedBody `json:"totp" doc:"The authenticator app. Null if none is enrolled."`
	Passkeys      []passkeyBody  `json:"passkeys" doc:"The passkeys."`
	RecoveryCodes int            `json:"recoveryCodes" doc:"Number of recovery codes that are left."`
	Demanded      bool           `json:"demanded" doc:"Whether the tenant requires a second factor of the caller."`
}

type confirmedBody struct {
	ConfirmedAt rolecall.Time `json:"confirmedAt" doc:"When the app was enrolled."`
}

func (s *Server) getFactors(ctx context.Context, c access.Caller, _ *noRequest) (Response[factorsBody], error) {
	own, err := s.signin.Factors(ctx, c)
	body := factorsBody{RecoveryCodes: own.RecoveryCodes, Demanded: own.Demanded}
	if own.TOTP.Sealed != nil {
		body.TOTP = &confirmedBody{own.TOTP.ConfirmedAt}
	}
	for i := range own.Passkeys {
		body.Passkeys = append(body.Passkeys, newPasskey(&own.Passkeys[i]))
	}
	return Response[factorsBody]{Body: body}, err
}

// totpSecretBody is the secret of an authenticator app.
type totpSecretBody struct {
	Secret string `json:"secret" doc:"The secret in base32, to type in."`
	URI    string `json:"uri" doc:"An otpauth:// URI, to show as a QR code."`
}

func newTOTPSecretBody(s *signin.TOTPSecret) totpSecretBody {
	return totpSecretBody{string(s.Secret), s.URI}
}

func (s *Server) beginTOTP(ctx context.Context, c access.Caller, _ *noRequest) (Response[totpSecretBody], error) {
	begun, err := s.signin.BeginTOTP(ctx, c)
	return Response[totpSecretBody]{Body: newTOTPSecretBody(&begun)}, err
}

type confirmTOTPRequest struct{ Body confirmTOTPBody }

type confirmTOTPBody struct {
	Code string `json:"code" required:"true" doc:"Six digits that the app shows."`
}

// recoveryCodesBody are recovery codes; there are none if the user had some before.
type recoveryCodesBody struct {
	RecoveryCodes []secret.RecoveryCode `json:"recoveryCodes,omitzero" doc:"Ten codes, each valid once. They are shown only here."`
}

func (s *Server) confirmTOTP(ctx context.Context, c access.Caller, in *confirmTOTPRequest) (Response[recoveryCodesBody], error) {
	codes, err := s.signin.ConfirmTOTP(ctx, c, in.Body.Code)
	return Response[recoveryCodesBody]{Body: recoveryCodesBody{codes}}, err
}

func (s *Server) deleteTOTP(ctx context.Context, c access.Caller, _ *noRequest) (Response[NoContent], error) {
	return Response[NoContent]{}, s.signin.RemoveTOTP(ctx, c)
}

func (s *Server) makeRecoveryCodes(ctx context.Context, c access.Caller, _ *noRequest) (Response[recoveryCodesBody], error) {
	codes, err := s.signin.MakeRecoveryCodes(ctx, c)
	return Response[recoveryCodesBody]{Body: recoveryCodesBody{codes}}, err
}

func (s *Server) resetFactors(ctx context.Context, c access.Caller, in *userRequest) (Response[NoContent], error) {
	return Response[NoContent]{}, s.signin.ResetFactors(ctx, c, in.ID)
}
