package rolecall

// Holder is a user, a service account or a group. All of them can hold roles. Users and service accounts can also hold
// API tokens.
type Holder struct {
	ID   AnyID
	Kind HolderKind
}

// HolderKind is the kind of a Holder.
type HolderKind uint8

// The kinds of holders.
const (
	HolderUser HolderKind = iota
	HolderAccount
	HolderGroup
)

// HolderOf returns the user, the service account or the group with the id as a Holder.
func HolderOf[T User | ServiceAccount | Group](id ID[T]) Holder {
	switch any(id).(type) {
	case ServiceAccountID:
		return Holder{AnyID(id), HolderAccount}
	case GroupID:
		return Holder{AnyID(id), HolderGroup}
	}
	return Holder{AnyID(id), HolderUser}
}

// UserID returns the id of the user. It is zero for other holders.
func (h Holder) UserID() UserID {
	if h.Kind != HolderUser {
		return UserID{}
	}
	return UserID(h.ID)
}

// ServiceAccountID returns the id of the service account. It is zero for other holders.
func (h Holder) ServiceAccountID() ServiceAccountID {
	if h.Kind != HolderAccount {
		return ServiceAccountID{}
	}
	return ServiceAccountID(h.ID)
}

// GroupID returns the id of the group. It is zero for other holders.
func (h Holder) GroupID() GroupID {
	if h.Kind != HolderGroup {
		return GroupID{}
	}
	return GroupID(h.ID)
}

// Subject returns the holder as the subject of an event.
func (h Holder) Subject() Subject {
	switch h.Kind {
	case HolderAccount:
		return About(h.ServiceAccountID())
	case HolderGroup:
		return About(h.GroupID())
	}
	return About(h.UserID())
}
