package access

import (
	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// EndSessions ends the sessions of the user. It keeps the session with the id except,
// unless this id is zero. For each ended session, it writes a session.ended event with the
// reason, and with the actor and request of the event like. It also deletes the links that
// were requested in the ended sessions, and all pending changes of the user's address.
func EndSessions(tx *store.Tx, user rolecall.UserID, except rolecall.SessionID, like *rolecall.Event, reason string) error {
	tx.DeleteOneTimeTokens(user, rolecall.TokenEmailChange)
	ended, err := tx.DeleteSessions(user, except)
	VoidLinks(tx, ended...)
	RecordEnded(tx, user, ended, like, reason)
	return err
}

// RecordEnded writes a session.ended event with the reason for each of the ended sessions
// of the user. The events have the actor and the request of the event like.
func RecordEnded(tx *store.Tx, user rolecall.UserID, ended []rolecall.SessionID, like *rolecall.Event, reason string) {
	for _, id := range ended {
		event := *like
		event.ID = rolecall.NewID[rolecall.Event](like.OccurredAt)
		event.Type, event.Subject, event.Members, event.Values = rolecall.EventSessionEnded, rolecall.About(user), nil, nil
		event.SessionID, event.Reason = id, reason
		tx.InsertEvent(event)
	}
}

// RevokeAccess ends the sessions of the user and deletes the user's invitation and all
// one-time tokens. It keeps the session with the id except, unless this id is zero. API
// tokens of the user stay valid.
func RevokeAccess(tx *store.Tx, user rolecall.UserID, except rolecall.SessionID, event *rolecall.Event, reason string) error {
	tx.DeleteAllOneTimeTokens(user)
	if _, err := tx.DeleteInvitationOf(user); err != nil {
		return err
	}
	return EndSessions(tx, user, except, event, reason)
}
