package postgres

import (
	"database/sql/driver"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/rolecall/rolecall"
)

// registerIDs makes a connection send and receive ids as uuids in binary form. Ids are
// sent as uuids in statements that are not prepared, too.
func registerIDs(types *pgtype.Map) {
	types.RegisterType(&pgtype.Type{Name: "uuid", OID: pgtype.UUIDOID, Codec: idCodec{}})
	for _, id := range []any{
		rolecall.TenantID{}, rolecall.UserID{}, rolecall.RoleID{}, rolecall.SessionID{}, rolecall.EventID{},
		rolecall.MailID{}, rolecall.TombstoneID{}, rolecall.APITokenID{}, rolecall.ServiceAccountID{}, rolecall.OperatorKeyID{}, rolecall.JobID{}, rolecall.WebhookID{}, rolecall.WebhookDeliveryID{}, rolecall.ConnectionID{}, rolecall.IdentityID{}, rolecall.GroupID{}, rolecall.DirectoryID{}, rolecall.DirectoryTokenID{}, rolecall.AnyID{},
	} {
		types.RegisterDefaultPgType(id, "uuid")
	}
}

// idCodec converts between the ids of this module and uuids. The zero id is NULL.
type idCodec struct{ pgtype.UUIDCodec }

// PlanEncode returns the plan to send value.
func (c idCodec) PlanEncode(types *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if _, ok := bytesOf(value); !ok {
		return c.UUIDCodec.PlanEncode(types, oid, format, value)
	}
	if format == pgtype.BinaryFormatCode {
		return encodeBinary{}
	}
	return encodeText{}
}

// PlanScan returns the plan to scan into target.
func (c idCodec) PlanScan(types *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	if format == pgtype.BinaryFormatCode && targetOf(target) != nil {
		return scanBinary{}
	}
	return c.UUIDCodec.PlanScan(types, oid, format, target)
}

type (
	encodeBinary struct{}
	encodeText   struct{}
	scanBinary   struct{}
)

func (encodeBinary) Encode(value any, buf []byte) ([]byte, error) {
	id, _ := bytesOf(value)
	if id.IsZero() {
		return nil, nil
	}
	return append(buf, id[:]...), nil
}

func (encodeText) Encode(value any, buf []byte) ([]byte, error) {
	id, _ := bytesOf(value)
	if id.IsZero() {
		return nil, nil
	}
	return id.Append(buf), nil
}

func (scanBinary) Scan(src []byte, target any) error {
	var value driver.Value
	if src != nil {
		value = src
	}
	return targetOf(target).Scan(value)
}

// bytesOf returns value as an AnyID. It returns ok = false if value is not an id.
func bytesOf(value any) (id rolecall.AnyID, ok bool) {
	switch id := value.(type) {
	case rolecall.TenantID:
		return rolecall.AnyID(id), true
	case rolecall.UserID:
		return rolecall.AnyID(id), true
	case rolecall.RoleID:
		return rolecall.AnyID(id), true
	case rolecall.SessionID:
		return rolecall.AnyID(id), true
	case rolecall.EventID:
		return rolecall.AnyID(id), true
	case rolecall.MailID:
		return rolecall.AnyID(id), true
	case rolecall.TombstoneID:
		return rolecall.AnyID(id), true
	case rolecall.APITokenID:
		return rolecall.AnyID(id), true
	case rolecall.ServiceAccountID:
		return rolecall.AnyID(id), true
	case rolecall.OperatorKeyID:
		return rolecall.AnyID(id), true
	case rolecall.JobID:
		return rolecall.AnyID(id), true
	case rolecall.WebhookID:
		return rolecall.AnyID(id), true
	case rolecall.GroupID:
		return rolecall.AnyID(id), true
	case rolecall.WebhookDeliveryID:
		return rolecall.AnyID(id), true
	case rolecall.ConnectionID:
		return rolecall.AnyID(id), true
	case rolecall.IdentityID:
		return rolecall.AnyID(id), true
	case rolecall.DirectoryID:
		return rolecall.AnyID(id), true
	case rolecall.DirectoryTokenID:
		return rolecall.AnyID(id), true
	case rolecall.AnyID:
		return id, true
	}
	return id, false
}

// targetOf returns target as a pointer to an AnyID, or nil if target is not a pointer to
// an id.
func targetOf(target any) *rolecall.AnyID {
	switch id := target.(type) {
	case *rolecall.TenantID:
		return (*rolecall.AnyID)(id)
	case *rolecall.UserID:
		return (*rolecall.AnyID)(id)
	case *rolecall.RoleID:
		return (*rolecall.AnyID)(id)
	case *rolecall.SessionID:
		return (*rolecall.AnyID)(id)
	case *rolecall.EventID:
		return (*rolecall.AnyID)(id)
	case *rolecall.MailID:
		return (*rolecall.AnyID)(id)
	case *rolecall.TombstoneID:
		return (*rolecall.AnyID)(id)
	case *rolecall.APITokenID:
		return (*rolecall.AnyID)(id)
	case *rolecall.ServiceAccountID:
		return (*rolecall.AnyID)(id)
	case *rolecall.OperatorKeyID:
		return (*rolecall.AnyID)(id)
	case *rolecall.JobID:
		return (*rolecall.AnyID)(id)
	case *rolecall.WebhookID:
		return (*rolecall.AnyID)(id)
	case *rolecall.GroupID:
		return (*rolecall.AnyID)(id)
	case *rolecall.WebhookDeliveryID:
		return (*rolecall.AnyID)(id)
	case *rolecall.ConnectionID:
		return (*rolecall.AnyID)(id)
	case *rolecall.IdentityID:
		return (*rolecall.AnyID)(id)
	case *rolecall.DirectoryID:
		return (*rolecall.AnyID)(id)
	case *rolecall.DirectoryTokenID:
		return (*rolecall.AnyID)(id)
	case *rolecall.AnyID:
		return id
	}
	return nil
}
