package rolecall

// Holder is a user or a service account. Both can hold roles and API tokens.
type Holder struct {
	ID        AnyID
	IsAccount bool // whether the holder is a service account
}

// HolderOf returns the user or service account with the id as a Holder.
func HolderOf[T User | ServiceAccount](id ID[T]) Holder {
	_, isAccount := any(id).(ServiceAccountID)
	return Holder{AnyID(id), isAccount}
}

// UserID returns the id of the user. It is zero for a service account.
func (h Holder) UserID() UserID {
	if h.IsAccount {
		return UserID{}
	}
	return UserID(h.ID)
}

// ServiceAccountID returns the id of the service account. It is zero for a user.
func (h Holder) ServiceAccountID() ServiceAccountID {
	if h.IsAccount {
		return ServiceAccountID(h.ID)
	}
	return ServiceAccountID{}
}

// Subject returns the holder as the subject of an event.
func (h Holder) Subject() Subject {
	if h.IsAccount {
		return About(h.ServiceAccountID())
	}
	return About(h.UserID())
}
