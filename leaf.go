package rolecall

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

// EventGroup is a part of an event that an erasure can remove. The leaf of an event in the Merkle log
// of its tenant has a salted commitment to each group instead of its data. So the leaf stays valid
// after the erasure, and the commitment does not reveal the data.
type EventGroup int

// The groups of an event.
const (
	GroupValues EventGroup = iota // the values before and after the change
	GroupReason
	GroupSource
	EventGroupCount
)

var groupNames = [EventGroupCount]string{"values", "reason", "source"}

// String returns the name of the group in a leaf.
func (g EventGroup) String() string { return groupNames[g] }

// seedLength is the number of random bytes from which the salts of an event are derived.
const seedLength = 16

// saltLength is the length of a salt in bytes.
const saltLength = 16

// EventSalts are the salts of the commitments of an event. After the erasure of a group, they have its
// commitment instead of its salt. Without the salt, the erased data cannot be guessed.
type EventSalts struct {
	seed   []byte // the salts of all groups are derived from it; nil after an erasure
	groups [EventGroupCount]groupSalt
}

// groupSalt is the salt of a group, or the commitment to an erased group.
type groupSalt struct {
	salt   [saltLength]byte
	erased *tlog.Hash
}

// NewEventSalts returns random salts for a new event.
func NewEventSalts() EventSalts {
	seed := make([]byte, seedLength)
	_, _ = rand.Read(seed) // never fails: it ends the process instead
	return EventSalts{seed: seed}
}

// The first byte of each group in the stored form of salts after an erasure.
const (
	storedSalt       = 1
	storedCommitment = 2
)

var errSalts = errors.New("the salts of an event are malformed")

// ParseEventSalts parses the stored form of the salts. For an event without salts, which is older than
// the log, it returns nil.
func ParseEventSalts(stored []byte) (*EventSalts, error) {
	switch len(stored) {
	case 0:
		return nil, nil
	case seedLength:
		return &EventSalts{seed: stored}, nil
	}
	s := new(EventSalts)
	for g := range s.groups {
		switch {
		case len(stored) > saltLength && stored[0] == storedSalt:
			stored = stored[1+copy(s.groups[g].salt[:], stored[1:]):]
		case len(stored) > tlog.HashSize && stored[0] == storedCommitment:
			s.groups[g].erased = new(tlog.Hash)
			stored = stored[1+copy(s.groups[g].erased[:], stored[1:]):]
		default:
			return nil, errSalts
		}
	}
	if len(stored) > 0 {
		return nil, errSalts
	}
	return s, nil
}

// Stored returns the form of the salts for the database.
func (s *EventSalts) Stored() []byte {
	if s.seed != nil {
		return s.seed
	}
	var b []byte
	for g := range s.groups {
		if erased := s.groups[g].erased; erased != nil {
			b = append(append(b, storedCommitment), erased[:]...)
		} else {
			b = append(append(b, storedSalt), s.groups[g].salt[:]...)
		}
	}
	return b
}

// Erased reports whether the data of the group was erased.
func (s *EventSalts) Erased(g EventGroup) bool { return s.groups[g].erased != nil }

// Salt returns the salt of a group that was not erased.
func (s *EventSalts) Salt(g EventGroup) []byte {
	if s.seed == nil {
		return s.groups[g].salt[:]
	}
	derived := tlog.RecordHash(append(s.seed[:seedLength:seedLength], groupNames[g]...))
	return derived[:saltLength]
}

// commitment returns the commitment to the data of the group: a hash of its salt and the data.
func (s *EventSalts) commitment(g EventGroup, data []byte) tlog.Hash {
	if erased := s.groups[g].erased; erased != nil {
		return *erased
	}
	return tlog.RecordHash(append(s.Salt(g), data...))
}

// erase replaces the salt of the group with the commitment to its data. It also replaces the seed with the salts of the
// other groups, because the erased salt could be derived from the seed.
func (s *EventSalts) erase(g EventGroup, data []byte) {
	committed := s.commitment(g, data)
	if s.seed != nil {
		for other := range EventGroupCount {
			copy(s.groups[other].salt[:], s.Salt(other))
		}
		s.seed = nil
	}
	s.groups[g] = groupSalt{erased: &committed}
}

// GroupData returns the data of the group to which its commitment commits. For the values, it is a JSON
// object with before and after. Without data, the result is empty.
func (e *Event) GroupData(g EventGroup) []byte {
	switch g {
	case GroupReason:
		return []byte(e.Reason)
	case GroupSource:
		return []byte(e.Source)
	}
	if e.Values == nil || len(e.Values.Before) == 0 && len(e.Values.After) == 0 {
		return nil
	}
	b := append(make([]byte, 0, 24+len(e.Values.Before)+len(e.Values.After)), `{"before":`...)
	b = append(appendOrNull(b, e.Values.Before), `,"after":`...)
	return append(appendOrNull(b, e.Values.After), '}')
}

func appendOrNull(b, value []byte) []byte {
	if len(value) == 0 {
		return append(b, "null"...)
	}
	return append(b, value...)
}

// LeafHash returns the hash of the leaf of the event in the Merkle log.
func (e *Event) LeafHash(s *EventSalts) tlog.Hash { return tlog.RecordHash(e.Leaf(s)) }

// Leaf returns the leaf of the event in the Merkle log: a JSON object with all members of the event,
// and with the commitments of groups instead of their data. The text is the same each time. It changes
// only if the event changes in another way than by an erasure.
func (e *Event) Leaf(s *EventSalts) []byte {
	b := append(make([]byte, 0, 896), `{"version":1,"id":`...)
	b = appendIDOrNull(b, e.ID)
	b = appendText(append(b, `,"type":`...), string(e.Type))
	b = e.OccurredAt.Append(append(b, `,"occurredAt":"`...))
	b = appendText(append(b, `","actor":{"type":`...), string(e.Actor.Type))
	b = appendIDOrNull(append(b, `,"id":`...), e.Actor.ID)
	b = appendText(append(b, `,"via":`...), e.Actor.Via)
	b = appendIDOrNull(append(b, `,"tokenId":`...), e.Actor.Token)
	b = appendText(append(b, `},"subject":{"type":`...), string(e.Subject.Type))
	b = appendIDOrNull(append(b, `,"id":`...), e.Subject.ID)
	b = append(b, `},"members":[`...)
	for i, member := range e.Members {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, member)
	}
	b = appendText(append(b, `],"requestId":`...), e.RequestID)
	b = appendIDOrNull(append(b, `,"sessionId":`...), e.SessionID)
	if e.IsAssignment() {
		before, after := e.assignedRoles()
		b = appendIDOrNull(append(b, `,"roleIds":{"before":`...), before)
		b = append(appendIDOrNull(append(b, `,"after":`...), after), '}')
	}
	b = append(b, `,"commitments":{`...)
	for g := range EventGroupCount {
		if g > 0 {
			b = append(b, ',')
		}
		committed := s.commitment(g, e.GroupData(g))
		b = append(append(append(append(b, '"'), groupNames[g]...), `":"`...), committed.String()...)
		b = append(b, '"')
	}
	return append(b, "}}"...)
}

// IsAssignment reports whether the event is about the assignment of a role. The ids of the
// roles stay in such an event when the holder is erased.
func (e *Event) IsAssignment() bool {
	return e.Type == EventRoleAssigned || e.Type == EventRoleUnassigned
}

func (e *Event) assignedRoles() (before, after RoleID) {
	if e.Values != nil {
		before, after = roleIn(e.Values.Before), roleIn(e.Values.After)
	}
	return before, after
}

// roleIn returns the roleId of an assignment in JSON. It returns the zero id if the JSON has no roleId.
func roleIn(assignment []byte) RoleID {
	var role struct {
		ID string `json:"roleId"`
	}
	if len(assignment) == 0 || json.Unmarshal(assignment, &role) != nil {
		return RoleID{}
	}
	id, err := ParseID[Role](role.ID)
	if err != nil {
		return RoleID{}
	}
	return id
}

// onlyRole returns the assignment in JSON with only its roleId, or nil if it has none.
func onlyRole(assignment []byte) []byte {
	id := roleIn(assignment)
	if id.IsZero() {
		return nil
	}
	return append(id.Append([]byte(`{"roleId":"`)), `"}`...)
}

// ErasedValues returns the values that stay in an event about an erased user: the ids of the roles of
// an assignment. It returns nil if nothing stays.
func (e *Event) ErasedValues() *EventValues {
	if !e.IsAssignment() || e.Values == nil {
		return nil
	}
	kept := EventValues{Before: onlyRole(e.Values.Before), After: onlyRole(e.Values.After)}
	if kept.Before == nil && kept.After == nil {
		return nil
	}
	return &kept
}

// EraseSubject removes the data of the user that the event is about, and reports whether the event
// had such data. The argument s can be nil if the event has no leaf yet. The reason of an erasure
// stays.
func (e *Event) EraseSubject(s *EventSalts) (changed bool) {
	if before, kept := string(e.GroupData(GroupValues)), e.ErasedValues(); before != "" {
		erased := *e
		erased.Values = kept
		if string(erased.GroupData(GroupValues)) != before {
			e.commitTo(s, GroupValues)
			e.Values, changed = kept, true
		}
	}
	if e.Reason != "" && e.Type != EventUserErased {
		e.commitTo(s, GroupReason)
		e.Reason, changed = "", true
	}
	if e.Actor.ID.IsZero() || AnyID(e.Actor.ID) == e.Subject.ID {
		changed = e.EraseSource(s) || changed
	}
	return changed
}

// EraseSource removes the IP address of the client, and reports whether the event had one. The
// argument s can be nil if the event has no leaf yet.
func (e *Event) EraseSource(s *EventSalts) (changed bool) {
	if e.Source == "" {
		return false
	}
	e.commitTo(s, GroupSource)
	e.Source = ""
	return true
}

func (e *Event) commitTo(s *EventSalts, g EventGroup) {
	if s != nil {
		s.erase(g, e.GroupData(g))
	}
}

func appendIDOrNull[T any](b []byte, id ID[T]) []byte {
	if id.IsZero() {
		return append(b, "null"...)
	}
	return append(id.Append(append(b, '"')), '"')
}

// appendText appends the text as a JSON string. Each text has one form only: control characters are
// \u00xx, quotation marks and backslashes have a backslash before them, and all other characters are
// unchanged.
func appendText(b []byte, text string) []byte {
	b = append(b, '"')
	for _, c := range []byte(strings.ToValidUTF8(text, "\uFFFD")) {
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < 0x20:
			b = append(b, `\u00`...)
			if c < 0x10 {
				b = append(b, '0')
			}
			b = strconv.AppendUint(b, uint64(c), 16)
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
