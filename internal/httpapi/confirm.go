package httpapi

import (
	"net/http"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/service"
)

func confirm(x *exchange) error {
	password, proof, err := x.confirmation()
	if err != nil {
		return err
	}
	if proofsIn(&proof) > 1 {
		return rolecall.Faults{{Code: "one-of", Detail: "must hold at most one of code, recoveryCode and passkey"}}.Err()
	}
	in, err := x.server.service.Confirm(x.ctx, x.call, x.presented, password, proof)
	if err != nil {
		return err
	}
	x.setCookies(&in)
	x.out = appendSession(x.out, in.Principal)
	return x.json(http.StatusOK)
}

func (x *exchange) confirmation() (password string, proof service.Proof, err error) {
	err = x.decode(append(proofMembers(&proof), member{"password", true, readString(&password)})...).err(noFaults)
	return password, proof, err
}
