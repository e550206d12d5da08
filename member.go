package rolecall

import (
	"iter"
	"math/bits"
	"slices"
)

// UserMember is one member of a user beside the id, which is always readable.
type UserMember uint8

// The members of a user, in the order in which they are answered.
const (
	MemberEmail UserMember = iota
	MemberName
	MemberDepartment
	MemberExternalID
	MemberMetadata
	MemberStatus
	MemberCreatedAt
	MemberUpdatedAt
	UserMemberCount // how many members there are
)

var memberNames = [UserMemberCount]string{"email", "name", "department", "externalId", "metadata", "status", "createdAt", "updatedAt"}

var memberReads, memberUpdates = func() (reads, updates [UserMemberCount]Permission) {
	for m, name := range memberNames {
		reads[m] = Permission{Resource: "users", Field: name, Action: "read"}
		updates[m] = Permission{Resource: "users", Field: name, Action: "update"}
	}
	return reads, updates
}()

// String returns the JSON name.
func (m UserMember) String() string { return memberNames[m] }

// Read returns the permission that shows the member: users.<member>:read.
func (m UserMember) Read() Permission { return memberReads[m] }

// Update returns the permission that changes the member: users.<member>:update.
func (m UserMember) Update() Permission { return memberUpdates[m] }

// Updatable reports whether PATCH takes the member.
func (m UserMember) Updatable() bool { return MemberName <= m && m <= MemberMetadata }

// UserMembers is a set of members.
type UserMembers uint16

// AllUserMembers is the set of all members.
const AllUserMembers UserMembers = 1<<UserMemberCount - 1

// SetOf returns the set of the members.
func SetOf(members ...UserMember) UserMembers {
	var set UserMembers
	for _, m := range members {
		set |= 1 << m
	}
	return set
}

// Has reports whether m is in the set.
func (s UserMembers) Has(m UserMember) bool { return s&(1<<m) != 0 }

// All yields the members of the set in order.
func (s UserMembers) All() iter.Seq[UserMember] {
	return func(yield func(UserMember) bool) {
		for rest := s; rest != 0; rest &= rest - 1 {
			if !yield(UserMember(bits.TrailingZeros16(uint16(rest)))) {
				return
			}
		}
	}
}

// Names returns the JSON names of the members in order.
func (s UserMembers) Names() []string {
	names := make([]string, 0, bits.OnesCount16(uint16(s)))
	for m := range s.All() {
		names = append(names, m.String())
	}
	return names
}

// UserMemberNamed returns the member with that JSON name.
func UserMemberNamed(name string) (UserMember, bool) {
	i := slices.Index(memberNames[:], name)
	return UserMember(max(i, 0)), i >= 0
}
