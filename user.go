package rolecall

import (
	"fmt"
	"iter"
	"maps"
	"math/bits"
	"net/mail"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// The bounds of a user's members, in code points. MetadataPairs is a number of pairs.
const (
	UserNameMax    = 255
	DepartmentMax  = 255
	ExternalIDMax  = 255
	EmailMax       = 254
	MetadataPairs  = 50
	MetadataKeyMax = 64
	MetadataMax    = 500
)

// User is a person of one tenant.
type User struct {
	ID         UserID       `json:"id" doc:"ID of the user."`
	Email      string       `json:"email" doc:"Email address, spelled as it was sent."`
	Name       string       `json:"name" doc:"Full name."`
	Department *string      `json:"department" doc:"Department of the user. The reach of a role can be limited to departments."`
	ExternalID *string      `json:"externalId" doc:"ID of the user in your application, unique in the tenant."`
	Metadata   Metadata     `json:"metadata" doc:"Key-value pairs that the application stores with the user."`
	Status     UserStatus   `json:"status" doc:"pending, active or suspended. In a list of deleted users, deleted. Later versions may add values."`
	ManagedBy  *DirectoryID `json:"managedBy" doc:"ID of the directory that manages the user. Only the directory can then change the name, the address and the department. Null for no directory."`
	CreatedAt  Time         `json:"createdAt" doc:"When the user was created."`
	UpdatedAt  Time         `json:"updatedAt" doc:"When the user was last changed."`
	Version    int64        `json:"-"` // increases with every change; the store rejects an update of an older version
}

// UserStatus says whether a user can sign in. Later versions may add values, which clients
// must accept.
type UserStatus string

// The states of a user.
const (
	UserPending   UserStatus = "pending" // no way to sign in yet
	UserActive    UserStatus = "active"
	UserSuspended UserStatus = "suspended"

	// UserDeleted is the status, in responses, of deleted users who can still be restored.
	// It is never stored.
	UserDeleted UserStatus = "deleted"
)

// EmailKey returns the key by which addresses are compared: the address in NFC and in lower
// case, with the domain as DomainKey. Invalid UTF-8 and NUL become U+FFFD. Databases accept
// such a key, and no stored address has it.
func EmailKey(email string) string {
	spelled := emailSpelling(email)
	at := strings.LastIndexByte(spelled, '@')
	if at < 0 {
		return spelled
	}
	return spelled[:at+1] + DomainKey(spelled[at+1:])
}

// emailSpelling returns the address in NFC and in lower case.
func emailSpelling(email string) string {
	return lowerCase(norm.NFC.String(strings.ReplaceAll(strings.ToValidUTF8(email, "\uFFFD"), "\x00", "\uFFFD")))
}

// DuplicateEmailKey returns the key of a user with the address if another user of the tenant has
// its EmailKey, because the address has another spelling of the domain. Only users from before
// domains were compared as DomainKey have such a key. It begins with the EmailKey and a space,
// which addresses cannot contain.
func DuplicateEmailKey(email string) string { return EmailKey(email) + " " + emailSpelling(email) }

// CanHaveDuplicates reports whether another user can have a DuplicateEmailKey of the key.
func CanHaveDuplicates(emailKey string) bool { return strings.Contains(emailKey, "xn--") }

// EmailKey returns the key by which the user's address is compared. The key is unique in a
// tenant.
func (u *User) EmailKey() string { return EmailKey(u.Email) }

// NameKey returns the folded name of the user, by which users are sorted.
func (u *User) NameKey() string { return Fold(u.Name) }

// DepartmentKey returns the key of the user's department, or nil if the user has no
// department.
func (u *User) DepartmentKey() *string {
	if u.Department == nil {
		return nil
	}
	key := TextKey(*u.Department)
	return &key
}

// UserDraft describes a user to create.
type UserDraft struct {
	Email      string            `json:"email" required:"true" minLength:"3" maxLength:"254" format:"email" doc:"Email address, unique in the tenant."`
	Name       string            `json:"name" required:"true" minLength:"1" maxLength:"255" doc:"Full name. It must have at least nameMinimum characters, a setting of the tenant."`
	Department *string           `json:"department" minLength:"1" maxLength:"255" doc:"Department of the user. It must have at least nameMinimum characters, a setting of the tenant. The reach of a role can be limited to departments. Null for no department."`
	ExternalID *string           `json:"externalId" minLength:"1" maxLength:"255" doc:"ID of the user in your application, unique in the tenant. Null for none."`
	Metadata   map[string]string `json:"metadata" nullable:"true" minLength:"0" maxLength:"500" maxProperties:"50" nameLength:"64" doc:"Key-value pairs that the application stores with the user, at most 50. Null for none."`
	Invite     bool              `json:"invite" doc:"Whether to mail an invitation to the user. It also needs the permission users:invite."`
}

// Check validates the draft. Names must have at least nameMinimum characters. Check returns
// nil if the draft is valid.
func (d *UserDraft) Check(nameMinimum int) FieldErrors {
	var faults FieldErrors
	code, detail := CheckEmail(d.Email)
	faults.Add("/email", code, detail)
	faults.Name("/name", d.Name, nameMinimum, UserNameMax)
	for m := range OptionalTexts.All() {
		m.check(&faults, *m.OfDraft(d), nameMinimum)
	}
	checkMetadata(&faults, d.Metadata)
	return faults
}

// User returns a new pending user with the values of the draft.
func (d *UserDraft) User(now Time) User {
	u := User{
		ID: NewID[User](now), Email: d.Email, Name: TrimName(d.Name), Metadata: NewMetadata(d.Metadata),
		Status: UserPending, CreatedAt: now, UpdatedAt: now, Version: 1,
	}
	for m := range OptionalTexts.All() {
		m.setText(&u, *m.OfDraft(d))
	}
	return u
}

// UserPatch changes a user. Absent members keep their values (RFC 7396).
type UserPatch struct {
	Name       Optional[string]             `json:"name" minLength:"1" maxLength:"255" doc:"Full name. It must have at least nameMinimum characters, a setting of the tenant."`
	Department Optional[*string]            `json:"department" minLength:"1" maxLength:"255" doc:"Department of the user. It must have at least nameMinimum characters, a setting of the tenant. The reach of a role can be limited to departments. Null for no department."`
	ExternalID Optional[*string]            `json:"externalId" minLength:"1" maxLength:"255" doc:"ID of the user in your application, unique in the tenant. Null for none."`
	Metadata   Optional[map[string]*string] `json:"metadata" nullable:"true" minLength:"0" maxLength:"500" maxProperties:"50" nameLength:"64" doc:"Key-value pairs to change. The value null removes its pair. Null instead of the object removes the pairs that the user has. The user can have at most 50 pairs after the change."` // nil: remove all pairs; a nil value: remove the pair
}

// Members returns the members that are present in the patch, even if their values are the
// current ones.
func (p *UserPatch) Members() UserMembers {
	var set UserMembers
	if p.Name.Set {
		set |= SetOf(MemberName)
	}
	for m := range OptionalTexts.All() {
		if m.OfPatch(p).Set {
			set |= SetOf(m)
		}
	}
	if p.Metadata.Set {
		set |= SetOf(MemberMetadata)
	}
	return set
}

// Check validates the patch alone, without the stored user. Names must have at least
// nameMinimum characters. Check returns nil if the patch is valid.
func (p *UserPatch) Check(nameMinimum int) FieldErrors {
	var faults FieldErrors
	if p.Name.Set {
		faults.Name("/name", p.Name.Value, nameMinimum, UserNameMax)
	}
	for m := range OptionalTexts.All() {
		m.check(&faults, m.OfPatch(p).Value, nameMinimum)
	}
	named := map[string]string{}
	for key, value := range p.Metadata.Value {
		if value != nil {
			named[key] = *value
		}
	}
	checkMetadata(&faults, named)
	return faults
}

// Apply returns the user with the changes of the patch, and the members whose values
// changed. It returns ErrValidation if the user would have too many metadata pairs.
func (p *UserPatch) Apply(u User, now Time) (User, UserMembers, error) {
	before := u
	if p.Name.Set {
		u.Name = TrimName(p.Name.Value)
	}
	for m := range OptionalTexts.All() {
		if text := m.OfPatch(p); text.Set {
			m.setText(&u, text.Value)
		}
	}
	if p.Metadata.Set {
		pairs, err := mergePairs(u.Metadata, p.Metadata.Value)
		if err != nil {
			return before, 0, err
		}
		if len(pairs) > MetadataPairs {
			var faults FieldErrors
			faults.Add("/metadata", "too-many", fmt.Sprintf("must have at most %d pairs after the change", MetadataPairs))
			return before, 0, faults.Err()
		}
		u.Metadata = NewMetadata(pairs)
	}
	changed := before.Differences(u)
	if changed != 0 {
		u.Stamp(now)
	}
	return u, changed, nil
}

// mergePairs returns the pairs of old with the changes of the patch. A nil patch removes
// all pairs.
func mergePairs(old Metadata, patch map[string]*string) (map[string]string, error) {
	if patch == nil {
		return nil, nil
	}
	pairs, err := old.Pairs()
	if err != nil {
		return nil, err
	}
	for key, value := range patch {
		if value == nil {
			delete(pairs, key)
		} else {
			pairs[key] = *value
		}
	}
	return pairs, nil
}

// Stamp records a change of the user at the time now: it sets UpdatedAt and increments
// Version. UpdatedAt becomes later even if now is not later.
func (u *User) Stamp(now Time) { u.UpdatedAt, u.Version = max(now, u.UpdatedAt+1), u.Version+1 }

// Differences returns the members whose values differ between u and v. It does not compare
// timestamps.
func (u User) Differences(v User) UserMembers {
	var set UserMembers
	for m := range (AllUserMembers &^ SetOf(MemberCreatedAt, MemberUpdatedAt)).All() {
		if !equalOptional(m.Text(&u), m.Text(&v)) {
			set |= SetOf(m)
		}
	}
	return set
}

// CheckEmail checks whether email is an address as in RFC 5321, with at most 64 octets
// before the @ and at most 254 octets in total. It returns the code and the detail of a
// field error. Both are empty if the address is valid.
func CheckEmail(email string) (code, detail string) {
	if code, detail := CheckText(email, 3, EmailMax); code != "" {
		return code, detail
	}
	parsed, err := mail.ParseAddress(email)
	at := strings.LastIndexByte(email, '@')
	if err != nil || parsed.Address != email || len(email) > EmailMax || at > 64 ||
		strings.ContainsFunc(email, func(r rune) bool { return !isVisible(r) }) || strings.ContainsAny(email[:max(at, 0)], `"(),:;<>[\]`) || !isDomain(email[at+1:]) {
		return "email", "must be an email address such as ada@example.com"
	}
	return "", ""
}

func isDomain(domain string) bool {
	if len(domain) == 0 || len(domain) > 253 {
		return false
	}
	for label := range strings.SplitSeq(domain, ".") {
		if len(label) == 0 || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, r := range label {
			if r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) {
				return false
			}
		}
	}
	return true
}

func checkMetadata(faults *FieldErrors, metadata map[string]string) {
	if len(metadata) > MetadataPairs {
		faults.Add("/metadata", "too-many", fmt.Sprintf("must have at most %d pairs", MetadataPairs))
		return
	}
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		value := metadata[key]
		if code, detail := CheckText(key, 1, MetadataKeyMax); code != "" {
			faults.Add("/metadata", code, "each key "+detail)
		}
		if value == "" {
			continue
		}
		if code, detail := CheckText(value, 0, MetadataMax); code != "" {
			faults.Add("/metadata/"+EscapePointer(key), code, detail)
		}
	}
}

// EscapePointer escapes the name of a member for use in a JSON Pointer (RFC 6901).
func EscapePointer(member string) string { return pointerEscapes.Replace(member) }

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// UserMember is a member of the JSON object of a user, such as email. The id is not a
// UserMember, because every caller who sees a user may read the id.
type UserMember uint8

// The members of a user, in the order of the response.
const (
	MemberEmail UserMember = iota
	MemberName
	MemberDepartment
	MemberExternalID
	MemberMetadata
	MemberStatus
	MemberManagedBy
	MemberCreatedAt
	MemberUpdatedAt
	UserMemberCount // the number of members, and not a member
)

// userMember describes a member of users. Members that drafts and patches set as a text or null have
// the fields from draft to isName.
type userMember struct {
	name      string          // in JSON
	updatable bool            // PATCH can change it
	of        func(*User) any // returns the address of the value
	draft     func(*UserDraft) **string
	patch     func(*UserPatch) *Optional[*string]
	lengthMax int                       // in code points
	isName    bool                      // trimmed, and has at least nameMinimum characters
	filter    func(*TextFilter) *string // nil if TextFilter does not have the member
}

// userMembers are all members of users.
var userMembers = [UserMemberCount]userMember{
	MemberEmail: {name: "email", of: func(u *User) any { return &u.Email }},
	MemberName:  {name: "name", updatable: true, of: func(u *User) any { return &u.Name }},
	MemberDepartment: {name: "department", updatable: true, of: func(u *User) any { return &u.Department },
		draft: func(d *UserDraft) **string { return &d.Department }, patch: func(p *UserPatch) *Optional[*string] { return &p.Department },
		lengthMax: DepartmentMax, isName: true},
	MemberExternalID: {name: "externalId", updatable: true, of: func(u *User) any { return &u.ExternalID },
		draft: func(d *UserDraft) **string { return &d.ExternalID }, patch: func(p *UserPatch) *Optional[*string] { return &p.ExternalID },
		lengthMax: ExternalIDMax, filter: func(f *TextFilter) *string { return &f.ExternalID }},
	MemberMetadata:  {name: "metadata", updatable: true, of: func(u *User) any { return &u.Metadata }},
	MemberStatus:    {name: "status", of: func(u *User) any { return &u.Status }},
	MemberManagedBy: {name: "managedBy", of: func(u *User) any { return &u.ManagedBy }},
	MemberCreatedAt: {name: "createdAt", of: func(u *User) any { return &u.CreatedAt }},
	MemberUpdatedAt: {name: "updatedAt", of: func(u *User) any { return &u.UpdatedAt }},
}

var (
	// UpdatableMembers are the members that PATCH can change.
	UpdatableMembers = membersWith(func(m *userMember) bool { return m.updatable })

	// OptionalTexts are the members that drafts and patches set as a text or null.
	OptionalTexts = membersWith(func(m *userMember) bool { return m.draft != nil })

	// FilterableTexts are the members of TextFilter.
	FilterableTexts = membersWith(func(m *userMember) bool { return m.filter != nil })
)

func membersWith(has func(*userMember) bool) (set UserMembers) {
	for m := range UserMemberCount {
		if has(&userMembers[m]) {
			set |= SetOf(m)
		}
	}
	return set
}

var memberReads, memberUpdates = func() (reads, updates [UserMemberCount]Permission) {
	for m := range userMembers {
		reads[m] = Permission{Resource: "users", Field: userMembers[m].name, Action: "read"}
		updates[m] = Permission{Resource: "users", Field: userMembers[m].name, Action: "update"}
	}
	return reads, updates
}()

// String returns the JSON name of the member.
func (m UserMember) String() string { return userMembers[m].name }

// Read returns the permission to read the member: users.<member>:read.
func (m UserMember) Read() Permission { return memberReads[m] }

// Update returns the permission to change the member: users.<member>:update.
func (m UserMember) Update() Permission { return memberUpdates[m] }

// Updatable reports whether PATCH can change the member.
func (m UserMember) Updatable() bool { return userMembers[m].updatable }

// Of returns the address of the value of the member in the user, such as &u.Email.
func (m UserMember) Of(u *User) any { return userMembers[m].of(u) }

// Text returns the value of the member as text, or nil for null.
func (m UserMember) Text(u *User) *string {
	switch value := m.Of(u).(type) {
	case *string:
		return value
	case **string:
		return *value
	case *UserStatus:
		return (*string)(value)
	case **DirectoryID:
		if *value == nil {
			return nil
		}
		return new((*value).String())
	case fmt.Stringer:
		return new(value.String())
	default:
		panic(fmt.Sprintf("rolecall: the member %v has the type %T", m, value))
	}
}

// OfDraft returns the address of the value in the draft. The member must be one of OptionalTexts.
func (m UserMember) OfDraft(d *UserDraft) **string { return userMembers[m].draft(d) }

// OfPatch returns the address of the value in the patch. The member must be one of OptionalTexts.
func (m UserMember) OfPatch(p *UserPatch) *Optional[*string] { return userMembers[m].patch(p) }

// OfFilter returns the address of the text in the filter. The member must be one of FilterableTexts.
func (m UserMember) OfFilter(f *TextFilter) *string { return userMembers[m].filter(f) }

// LengthMax returns the maximum length in code points. The member must be one of OptionalTexts.
func (m UserMember) LengthMax() int { return userMembers[m].lengthMax }

// check adds an error if the text is invalid. The member must be one of OptionalTexts.
func (m UserMember) check(faults *FieldErrors, text *string, nameMinimum int) {
	switch row := &userMembers[m]; {
	case text == nil:
	case row.isName:
		faults.Name("/"+row.name, *text, nameMinimum, row.lengthMax)
	default:
		faults.Text("/"+row.name, *text, 1, row.lengthMax)
	}
}

// setText sets the member of the user. The member must be one of OptionalTexts.
func (m UserMember) setText(u *User, text *string) {
	if userMembers[m].isName {
		text = trimOptional(text)
	}
	*m.Of(u).(**string) = text
}

// UserMembers is a set of members.
type UserMembers uint16

// AllUserMembers is the set of all members.
const AllUserMembers UserMembers = 1<<UserMemberCount - 1

// SetOf returns the set that has these members.
func SetOf(members ...UserMember) UserMembers {
	var set UserMembers
	for _, m := range members {
		set |= 1 << m
	}
	return set
}

// Has reports whether m is in the set.
func (s UserMembers) Has(m UserMember) bool { return s&(1<<m) != 0 }

// All yields the members of the set, in the order of the response.
func (s UserMembers) All() iter.Seq[UserMember] {
	return func(yield func(UserMember) bool) {
		for rest := s; rest != 0; rest &= rest - 1 {
			if !yield(UserMember(bits.TrailingZeros16(uint16(rest)))) {
				return
			}
		}
	}
}

// Names returns the JSON names of the members, in the order of the response.
func (s UserMembers) Names() []string {
	names := make([]string, 0, bits.OnesCount16(uint16(s)))
	for m := range s.All() {
		names = append(names, m.String())
	}
	return names
}

// UserMemberNamed returns the member with the JSON name. The second result is false if no
// member has this name.
func UserMemberNamed(name string) (UserMember, bool) {
	for m := range UserMemberCount {
		if userMembers[m].name == name {
			return m, true
		}
	}
	return 0, false
}

// TextFilter selects users by the whole texts of members. A member that is empty does not filter.
type TextFilter struct {
	ExternalID string `query:"externalId" maxLength:"255" doc:"Only the user with this external ID."`
}

// All yields the members that filter, with their texts.
func (f *TextFilter) All() iter.Seq2[UserMember, string] {
	return func(yield func(UserMember, string) bool) {
		for m := range FilterableTexts.All() {
			if text := *m.OfFilter(f); text != "" && !yield(m, text) {
				return
			}
		}
	}
}

// TombstoneLifetime is how long a deleted user can be restored.
const TombstoneLifetime = 30 * 24 * time.Hour

// Tombstone is the data of a deleted user that is kept so that the user can be restored. It
// contains no credentials.
type Tombstone struct {
	ID          TombstoneID // sorts by time of deletion
	DeletedAt   Time
	User        User
	Assignments []Assignment // of their Role, only the ID is set; nil in lists
	Groups      []GroupID    // nil in lists
}

// Restored returns the user as it is to be stored by a restore at the time now. A user who
// was active becomes pending, because the credentials were deleted. A directory no longer manages the user.
func (t *Tombstone) Restored(now Time) User {
	u := t.User
	u.ManagedBy = nil
	if u.Status == UserActive {
		u.Status = UserPending
	}
	u.Stamp(now)
	return u
}

// TombstoneQuery selects deleted users, the most recently deleted first.
type TombstoneQuery struct {
	Within Reach // only users in this reach
	Since  Time
	After  *Position
	Limit  int
}

// UserSort is a sort order of users.
type UserSort uint8

// The sort orders of users.
const (
	SortByID UserSort = iota // by time of creation, because ids begin with this time
	SortByName
	SortByEmail
)

// UserQuery selects and sorts users. The store does not check permissions. Before the
// query, the service reduces Within to the users whose filtered and sorted members the
// caller may read.
type UserQuery struct {
	TextFilter
	Within     Reach   // only users of these departments
	EmailKey   string  // only the user with this address, if set
	Department *string // only users of the department with this folded name, if set
	Status     UserStatus
	Role       RoleID  // only users with an unexpired assignment of this role, if set
	Direct     bool    // Role does not select users who have the role only through a group
	Group      GroupID // only members of this group, if set
	HeldAt     Time    // if set, Role selects the users who had the role at this time
	Now        Time    // the time at which this assignment must be unexpired

	Words      []string // each must be the beginning of a word of the user's name or address
	NameWords  Reach    // users whose names the search may use
	EmailWords Reach    // users whose addresses the search may use

	Sort  UserSort
	Desc  bool
	After *Position
	Limit int
	Count bool
}

// UserInTenant is a user with an address that was searched in all tenants.
type UserInTenant struct {
	Tenant Tenant
	UserID UserID
	Status UserStatus
}
