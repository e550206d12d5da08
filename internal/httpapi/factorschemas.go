package httpapi

import (
	"github.com/danielgtaylor/huma/v2"

	"github.com/rolecall/rolecall"
)

// factorSchemas are those of second factors.
func factorSchemas() properties {
	newPasskey, enrolment := passkey(), totpSecret()
	newPasskey["recoveryCodes"], newPasskey["secretWithheld"] = recoveryCodes(), truth()
	enrolment["publicKey"] = publicKey("For navigator.credentials.create; absent where there are no passkeys.")
	return properties{
		"Factors": object("One's second factors.", properties{
			"totp":          described(nullable(object("", properties{"confirmedAt": moment()}, "confirmedAt")), "The authenticator app; null for none."),
			"passkeys":      list(ref("Passkey")),
			"recoveryCodes": described(number(), "How many are left."),
			"demanded":      described(truth(), "Whether the tenant demands a second factor of the caller."),
		}, "totp", "passkeys", "recoveryCodes", "demanded"),
		"Passkey":        object("A passkey.", passkey(), "id", "name", "createdAt", "lastUsedAt"),
		"NewPasskey":     object("A new passkey. Recovery codes are shown once; a repeated request is told that they were.", newPasskey, "id", "name", "createdAt", "lastUsedAt"),
		"TotpSecret":     object("A secret for an authenticator app.", totpSecret(), "secret", "uri"),
		"Enrolment":      object("What to make a second factor of: a code of the secret, or a passkey.", enrolment, "secret", "uri"),
		"RecoveryCodes":  object("Recovery codes; absent if there are some from before.", properties{"recoveryCodes": recoveryCodes()}),
		"PasskeyOptions": object("Options for an authenticator.", properties{"publicKey": publicKey("What parseCreationOptionsFromJSON or parseRequestOptionsFromJSON takes.")}, "publicKey"),
	}
}

// credential is a PublicKeyCredential as a browser writes it.
func credentialSchema() *huma.Schema {
	return &huma.Schema{Type: "object", Description: "What toJSON() returns of the credential that the browser gave."}
}

// publicKey is what a browser passes to an authenticator.
func publicKey(about string) *huma.Schema {
	return &huma.Schema{Type: "object", Description: about}
}

func recoveryCodes() *huma.Schema {
	return described(list(anyText()), "Ten codes, each good once; shown when the first factor is made.")
}

func passkey() properties {
	return properties{"id": anyText(), "name": anyText(), "createdAt": moment(), "lastUsedAt": nullable(moment())}
}

func passkeyName() *huma.Schema {
	return described(text(1, rolecall.PasskeyNameMax), "By which its owner knows it.")
}

func totpSecret() properties {
	return properties{"secret": described(anyText(), "In base32, to be typed in."), "uri": described(anyText(), "otpauth://, to be shown as a QR code.")}
}
