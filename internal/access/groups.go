package access

import (
	"errors"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// ReleaseGroups makes the groups of a deleted directory or connection groups without a source, with an event for each.
// Their members and roles stay. If a group without a source has the name of such a group, the name of the source is
// appended to its name. The transaction must have called LockOwners.
func (s *Service) ReleaseGroups(tx *store.Tx, c Caller, source rolecall.MemberSource, name string) error {
	before, err := tx.AllGroupsOfSource(source)
	if err != nil || len(before) == 0 {
		return err
	}
	var failure error
	if err := tx.ReleaseGroups(source, func(g rolecall.Group) string {
		free, err := freeName(tx, g.Name, name)
		if err != nil {
			failure = err
		}
		return free
	}); err != nil || failure != nil {
		return errors.Join(err, failure)
	}
	return s.recordReleased(tx, c, before, string(source.Type)+" deleted")
}

// recordReleased writes the events of the groups that had a source before, with the reason.
func (s *Service) recordReleased(tx *store.Tx, c Caller, before []rolecall.Group, reason string) error {
	ids := make([]rolecall.GroupID, len(before))
	for i := range before {
		ids[i] = before[i].ID
	}
	released, err := tx.GroupsByID(ids)
	if err != nil {
		return err
	}
	for i := range before {
		at := slices.IndexFunc(released, func(g rolecall.Group) bool { return g.ID == before[i].ID })
		if at < 0 {
			continue
		}
		was, is := &before[i], &released[at]
		event := s.Event(c, rolecall.EventGroupUpdated, rolecall.About(is.ID))
		event.Reason = reason
		if was.Name != is.Name {
			event.Members = append(event.Members, "name")
		}
		if was.ExternalID != nil && is.ExternalID == nil {
			event.Members = append(event.Members, "externalId")
		}
		event.Members = append(event.Members, "source")
		if event.Values, err = EventValues(was, is); err != nil {
			return err
		}
		tx.InsertEvent(*event)
	}
	return nil
}

// freeName returns a name that begins with the name, names the source, and that no group without a source has.
func freeName(tx *store.Tx, name, source string) (string, error) {
	for n := 1; ; n++ {
		suffix := " (" + source + ")"
		if n > 1 {
			suffix = " (" + source + " " + strconv.Itoa(n) + ")"
		}
		kept := []rune(name)
		kept = kept[:min(len(kept), rolecall.GroupNameMax-utf8.RuneCountInString(suffix))]
		free := rolecall.TrimName(string(kept)) + suffix
		_, taken, err := tx.GroupsOfSource(rolecall.MemberSource{}, rolecall.UserID{}, rolecall.MatchName, []string{(&rolecall.Group{Name: free}).NameKey()})
		if err != nil || len(taken) == 0 {
			return free, err
		}
	}
}
