package rolecall

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// The limits of directories.
const (
	DirectoriesMax         = 20 // in a tenant
	DirectoryNameMin       = 2
	DirectoryNameMax       = 100
	DirectoryTokensMax     = 2 // of a directory, so that a token can be replaced
	DirectoryTokenNameMin  = 3
	DirectoryTokenNameMax  = 100
	DirectoryTokenWarning  = 30 * 24 * time.Hour // how long before the expiry of a token the owners of the tenant get a mail
	DirectoryRequestsMax   = 100                 // requests that are kept of a directory
	DirectoryMembersMax    = 1000                // changes of members in a request
	DirectoryStartIndexMax = 10_000
)

// Matching says what happens when a directory creates a user whose address another user has.
type Matching string

// The values of Matching.
const (
	MatchRefuse Matching = "refuse" // the request is refused
	MatchEmail  Matching = "email"  // the directory takes over the user, who must have no directory and must not be an owner
)

// Deprovisioning says what happens to a user that a directory deletes.
type Deprovisioning string

// The values of Deprovisioning.
const (
	DeprovisionSuspend Deprovisioning = "suspend"
	DeprovisionDelete  Deprovisioning = "delete"
)

// Directory lets an identity provider create, change and suspend users and groups of a tenant over SCIM 2.0 (RFC 7644).
type Directory struct {
	ID             DirectoryID    `json:"id" doc:"ID of the directory."`
	Name           string         `json:"name" doc:"Name of the directory."`
	Matching       Matching       `json:"matching" enum:"refuse,email" doc:"What happens when the directory creates a user whose address another user has. refuse: the request fails. email: the directory takes over the user, who must have no directory and must not be an owner."`
	Deprovisioning Deprovisioning `json:"deprovisioning" enum:"suspend,delete" doc:"What happens to a user that the directory deletes. suspend: the user is suspended, and keeps roles and groups. delete: the user is deleted, and can be restored for 30 days."`
	Paused         bool           `json:"paused" doc:"Whether the requests of the directory are refused with 503, so that nothing changes until the directory is resumed."`
	CreatedAt      Time           `json:"createdAt" doc:"When the directory was created."`
	UpdatedAt      Time           `json:"updatedAt" doc:"When the directory was changed last."`
	Version        int64          `json:"-"`
}

// NameKey returns the key by which names of directories are compared.
func (d *Directory) NameKey() string { return TextKey(d.Name) }

// DirectoryDraft describes a directory to create.
type DirectoryDraft struct {
	Name           string                   `json:"name" required:"true" minLength:"2" maxLength:"100" doc:"Name of the directory, such as Acme Entra."`
	Matching       Optional[Matching]       `json:"matching" enum:"refuse,email" doc:"What happens when the directory creates a user whose address another user has. The default is refuse."`
	Deprovisioning Optional[Deprovisioning] `json:"deprovisioning" enum:"suspend,delete" doc:"What happens to a user that the directory deletes. The default is suspend."`
}

// Check validates the draft. It returns nil if the draft is valid.
func (d *DirectoryDraft) Check() FieldErrors {
	return checkDirectory(Some(d.Name), d.Matching, d.Deprovisioning)
}

func checkDirectory(name Optional[string], matching Optional[Matching], deprovisioning Optional[Deprovisioning]) (faults FieldErrors) {
	if name.Set {
		faults.Name("/name", name.Value, DirectoryNameMin, DirectoryNameMax)
	}
	if matching.Set && matching.Value != MatchRefuse && matching.Value != MatchEmail {
		faults.Add("/matching", "enum", "must be refuse or email")
	}
	if deprovisioning.Set && deprovisioning.Value != DeprovisionSuspend && deprovisioning.Value != DeprovisionDelete {
		faults.Add("/deprovisioning", "enum", "must be suspend or delete")
	}
	return faults
}

// Directory returns a new directory with the values of the draft. The draft must have passed Check.
func (d *DirectoryDraft) Directory(now Time) Directory {
	directory := Directory{
		ID: NewID[Directory](now), Name: TrimName(d.Name), Matching: MatchRefuse, Deprovisioning: DeprovisionSuspend,
		CreatedAt: now, UpdatedAt: now, Version: 1,
	}
	if d.Matching.Set {
		directory.Matching = d.Matching.Value
	}
	if d.Deprovisioning.Set {
		directory.Deprovisioning = d.Deprovisioning.Value
	}
	return directory
}

// DirectoryPatch changes a directory. Absent members keep their values (RFC 7396).
type DirectoryPatch struct {
	Name           Optional[string]         `json:"name" minLength:"2" maxLength:"100" doc:"Name of the directory."`
	Matching       Optional[Matching]       `json:"matching" enum:"refuse,email" doc:"What happens when the directory creates a user whose address another user has."`
	Deprovisioning Optional[Deprovisioning] `json:"deprovisioning" enum:"suspend,delete" doc:"What happens to a user that the directory deletes."`
	Paused         Optional[bool]           `json:"paused" doc:"Whether to refuse the requests of the directory."`
}

// Check validates the patch. It returns nil if the patch is valid.
func (p *DirectoryPatch) Check() FieldErrors {
	return checkDirectory(p.Name, p.Matching, p.Deprovisioning)
}

// Apply returns the directory with the changes of the patch, and the names of the members whose values changed. If no
// value changed, the names are nil. The patch must have passed Check.
func (p *DirectoryPatch) Apply(d Directory, now Time) (Directory, []string) {
	var changed []string
	if name := TrimName(p.Name.Value); p.Name.Set && name != d.Name {
		d.Name, changed = name, append(changed, "name")
	}
	if p.Matching.Set && p.Matching.Value != d.Matching {
		d.Matching, changed = p.Matching.Value, append(changed, "matching")
	}
	if p.Deprovisioning.Set && p.Deprovisioning.Value != d.Deprovisioning {
		d.Deprovisioning, changed = p.Deprovisioning.Value, append(changed, "deprovisioning")
	}
	if p.Paused.Set && p.Paused.Value != d.Paused {
		d.Paused, changed = p.Paused.Value, append(changed, "paused")
	}
	if changed != nil {
		d.UpdatedAt, d.Version = max(now, d.UpdatedAt+1), d.Version+1
	}
	return d, changed
}

// DirectoryToken lets an identity provider use a directory. The struct does not contain the secret.
type DirectoryToken struct {
	ID          DirectoryTokenID `json:"id" doc:"ID of the token."`
	DirectoryID DirectoryID      `json:"directoryId" doc:"ID of the directory."`
	Name        string           `json:"name" doc:"Name of the token."`
	CreatedBy   UserID           `json:"createdBy" nullable:"true" doc:"ID of the user who created the token. Null for an operator."`
	CreatedAt   Time             `json:"createdAt" doc:"When the token was created."`
	ExpiresAt   Time             `json:"expiresAt" doc:"When the token expires. The owners of the tenant get a mail 30 days before."`
	LastUsedAt  Time             `json:"-"` // zero: the token was never used
}

// Live reports whether the token is valid at the time now.
func (t *DirectoryToken) Live(now Time) bool { return now < t.ExpiresAt }

// DirectoryTokenDraft describes a token of a directory to create.
type DirectoryTokenDraft struct {
	Name      string `json:"name" required:"true" minLength:"3" maxLength:"100" doc:"Name of the token, for example where it is used."`
	ExpiresAt Time   `json:"expiresAt" required:"true" doc:"When the token expires: in the future, and at most 366 days from now."`
}

// Check validates the draft. It returns nil if the draft is valid.
func (d *DirectoryTokenDraft) Check(now Time) FieldErrors {
	var faults FieldErrors
	faults.Name("/name", d.Name, DirectoryTokenNameMin, DirectoryTokenNameMax)
	checkTokenExpiry(&faults, d.ExpiresAt, now)
	return faults
}

// DirectoryToken returns a new token of the directory with the values of the draft. The draft must have passed Check.
func (d *DirectoryTokenDraft) DirectoryToken(directory DirectoryID, now Time) DirectoryToken {
	return DirectoryToken{ID: NewID[DirectoryToken](now), DirectoryID: directory, Name: TrimName(d.Name), CreatedAt: now, ExpiresAt: d.ExpiresAt}
}

// The errors of SCIM requests. No operation of the API returns them, so they are not declared.
var (
	ErrUserNameTaken   = &Error{Kind: Conflict, Code: "user-name-taken", Detail: "Another user of this directory has this userName."}
	ErrOwnerProtected  = &Error{Kind: Conflict, Code: "owner-protected", Detail: "This user is an owner of the tenant. A directory cannot take over, suspend or delete an owner, or change the owner's address. Let another owner remove the role Owner first."}
	ErrDirectoryPaused = &Error{Kind: Unavailable, Code: "directory-paused", Detail: "An administrator has paused this directory.", RetryAfter: time.Hour}
	ErrUnknownMember   = &Error{Kind: Invalid, Code: "unknown-member", Detail: "Members must be users of this directory."}
)

// DirectoryUser is a user of a directory, with the data that the directory has sent.
type DirectoryUser struct {
	User       UserID
	Directory  DirectoryID
	UserName   string  // unique in the directory, without regard to case
	ExternalID *string // at the provider; need not be unique
	WorkEmail  string  // the primary address, or that of the type work; empty: none
	Active     bool    // the last value of active that the directory sent
	Suspended  bool    // the directory has suspended the user
	Removed    bool    // the directory has deleted the user, who is only suspended
	Attributes string  // JSON, as the directory has sent them; empty: it has not sent any
}

// Equal reports whether the directory has sent the same values of the user, and the user has the same state. The
// attributes contain the names.
func (u *DirectoryUser) Equal(v *DirectoryUser) bool {
	return u.Directory == v.Directory && equalOptional(u.ExternalID, v.ExternalID) && u.Active == v.Active && u.Suspended == v.Suspended &&
		u.Removed == v.Removed && u.Attributes == v.Attributes
}

// UserNameKey returns the key by which names of users are compared in a directory.
func (u *DirectoryUser) UserNameKey() string { return TextKey(u.UserName) }

// DirectoryEntry is a user with the data of the directory. For a user without a directory, Of is zero.
type DirectoryEntry struct {
	User User
	Of   DirectoryUser
}

// DirectoryUserQuery selects the users of a directory, sorted by id. A field with its zero value does not filter.
type DirectoryUserQuery struct {
	Directory  DirectoryID
	ID         UserID
	UserName   string // without regard to case
	ExternalID string
	WorkEmail  string
	Active     Optional[bool]
	After      UserID // the last user of the page before
	Offset     int    // at most DirectoryStartIndexMax
	Limit      int
}

// DirectoryRequest is a request that a directory has sent.
type DirectoryRequest struct {
	DirectoryID DirectoryID `json:"-"`
	At          Time        `json:"at" doc:"When the request was received."`
	Method      string      `json:"method" doc:"Method of the request."`
	Path        string      `json:"path" doc:"Path of the request after the base URL, without its query."`
	Status      int         `json:"status" doc:"Status of the response."`
	Detail      string      `json:"detail" doc:"Why the request was refused. Empty if it succeeded."`
}

// MemberSource is the directory or the connection that fills a group. It is zero for a group without a source.
type MemberSource struct {
	Type SourceType `json:"type" required:"true" enum:"directory,connection" doc:"directory or connection."`
	ID   AnyID      `json:"id" required:"true" doc:"ID of the directory or the connection."`
}

// SourceType is the kind of a MemberSource.
type SourceType string

// The values of SourceType.
const (
	SourceDirectory  SourceType = "directory"
	SourceConnection SourceType = "connection"
)

// SourceOf returns the directory or the connection with the id as the source of groups.
func SourceOf[T Directory | Connection](id ID[T]) MemberSource {
	kind := SourceDirectory
	if _, ok := any(id).(ConnectionID); ok {
		kind = SourceConnection
	}
	return MemberSource{kind, AnyID(id)}
}

// String returns the stored form of the source, such as directory:018f….
func (s MemberSource) String() string {
	if s == (MemberSource{}) {
		return ""
	}
	return string(s.Type) + ":" + s.ID.String()
}

// MarshalJSON returns the source as in events, and null if it is zero (json.Marshaler).
func (s MemberSource) MarshalJSON() ([]byte, error) {
	if s == (MemberSource{}) {
		return []byte("null"), nil
	}
	type source MemberSource // without this method
	return json.Marshal(source(s))
}

// Value returns the stored form of the source (driver.Valuer).
func (s MemberSource) Value() (driver.Value, error) { return s.String(), nil }

// Scan sets the source from its stored form (sql.Scanner).
func (s *MemberSource) Scan(src any) error {
	text, ok := src.(string)
	if !ok {
		return fmt.Errorf("rolecall: cannot scan %T into a source", src)
	}
	*s = MemberSource{}
	if text == "" {
		return nil
	}
	kind, id, _ := strings.Cut(text, ":")
	s.Type = SourceType(kind)
	return s.ID.UnmarshalText([]byte(id))
}
