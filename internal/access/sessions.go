package access

import (
	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/audit"
	"github.com/rolecall/rolecall/internal/store"
)

// EndSessions ends all sessions of the user except the session with the id except, which
// may be zero. It writes an event for each ended session. The event is a copy of like
// with another type and the given reason. It also voids the links that were requested in
// these sessions, and all pending changes of the user's address.
func EndSessions(tx *store.Tx, user rolecall.UserID, except rolecall.SessionID, like *rolecall.Event, reason string) error {
	tx.DeleteOneTimeTokens(user, rolecall.TokenEmailChange)
	ended, err := tx.DeleteSessions(user, except)
	VoidLinks(tx, ended...)
	RecordEnded(tx, user, ended, like, reason)
	return err
}

// RecordEnded writes an event for each session of the user that was ended.
func RecordEnded(tx *store.Tx, user rolecall.UserID, ended []rolecall.SessionID, like *rolecall.Event, reason string) {
	for _, id := range ended {
		event := *like
		event.ID = rolecall.NewID[rolecall.Event](like.OccurredAt)
		event.Type, event.Subject, event.Members, event.Values = rolecall.EventSessionEnded, audit.AboutUser(user), nil, nil
		event.SessionID, event.Reason = id, reason
		tx.InsertEvent(event)
	}
}
