package directory

import (
	"bytes"
	"context"
	"slices"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/store"
)

const (
	// accessRounds is the maximum number of reads of the store for one page of a listing
	// with a department. The store cannot compare departments, so each read also returns
	// holders whose reach does not include the department. accessPage drops these holders,
	// and reads again to fill the page.
	accessRounds = 5

	// accountsKey is the key of a cursor that points to a service account. The listing has
	// all users first, and then the service accounts.
	accountsKey = "service-accounts"
)

// AccessListing selects the users and service accounts that have Permission.
type AccessListing struct {
	Permission rolecall.Permission
	Department string // if set: only holders whose reach includes this department
	After      *rolecall.Position
	Limit      int
}

// Access is a user or a service account that has a permission. Assignments has the
// assignments that give the permission to this holder, sorted by the id of their role.
type Access struct {
	User        *rolecall.User           // nil for a service account
	Account     *rolecall.ServiceAccount // nil for a user
	Assignments []rolecall.Assignment
}

func (a *Access) id() rolecall.AnyID {
	if a.User != nil {
		return rolecall.AnyID(a.User.ID)
	}
	return rolecall.AnyID(a.Account.ID)
}

// size returns about how many bytes the holder has in a response.
func (a *Access) size() (size int) {
	for i := range a.Assignments {
		size += a.Assignments[i].Size()
		for _, p := range a.Assignments[i].Role.Permissions {
			size += len(p.String()) + len(`"",`)
		}
	}
	if a.User != nil {
		size += len(a.User.Metadata.String())
	}
	return size
}

// Access returns a page of the users and service accounts that have a permission through an
// unexpired assignment. Users come first, and only those whose roles the caller may read.
// Service accounts follow if the caller may read them. A page can have fewer items than the
// limit although other pages follow. Access can fail with ErrPermissionDenied.
func (s *Service) Access(ctx context.Context, c access.Caller, l AccessListing) (page rolecall.Page[Access], err error) {
	if err := authz.ListAccess.Authorize(c.Principal); err != nil {
		return page, err
	}
	q := rolecall.AccessQuery{
		Permission: l.Permission, Within: c.Visible().Intersect(c.Reach(rolecall.RolesRead)), Now: s.now(), After: l.After, Limit: l.Limit,
	}
	err = s.access.View(ctx, c, func(tx *store.Tx) error {
		page = rolecall.Page[Access]{}
		if l.After == nil || l.After.Key == "" {
			if page, err = accessPage(q, l.Department, func(q rolecall.AccessQuery) (rolecall.Page[Access], error) { return usersWithAccess(tx, q) }); err != nil || page.Next != nil {
				return err
			}
		}
		return withAccounts(tx, c, q, l, &page)
	})
	return page, err
}

// withAccounts adds service accounts to the page until the page is full. It does nothing if
// the caller may not read service accounts.
func withAccounts(tx *store.Tx, c access.Caller, q rolecall.AccessQuery, l AccessListing, page *rolecall.Page[Access]) error {
	if authz.ReadServiceAccounts.Authorize(c.Principal) != nil {
		return nil
	}
	if q.Limit -= len(page.Items); q.Limit == 0 {
		page.Next = &rolecall.Position{Key: accountsKey}
		return nil
	}
	if l.After == nil || l.After.Key == "" || l.After.ID.IsZero() {
		q.After = nil // before the first service account
	}
	accounts, err := accessPage(q, l.Department, func(q rolecall.AccessQuery) (rolecall.Page[Access], error) { return accountsWithAccess(tx, q) })
	if err != nil {
		return err
	}
	page.Items = append(page.Items, accounts.Items...)
	if page.Next = accounts.Next; page.Next != nil {
		page.Next.Key = accountsKey
	}
	return nil
}

// accessPage returns a page of the holders that q selects. If a department is given,
// accessPage drops holders whose reach does not include the department. To fill the page,
// it then calls read up to accessRounds times.
func accessPage(q rolecall.AccessQuery, department string, read func(rolecall.AccessQuery) (rolecall.Page[Access], error)) (page rolecall.Page[Access], err error) {
	if department == "" {
		return read(q)
	}
	limit, size := q.Limit, 0
	q.Limit = rolecall.MaxLimit
	for range accessRounds {
		next, err := read(q)
		if err != nil {
			return page, err
		}
		for _, a := range next.Items {
			a.Assignments = slices.DeleteFunc(a.Assignments, func(a rolecall.Assignment) bool { return !a.Reach.Includes(&department) })
			if len(a.Assignments) == 0 {
				continue
			}
			size += a.size()
			if n := len(page.Items); n == limit || n > 0 && size > rolecall.MaxPageBytes {
				page.Next = &rolecall.Position{ID: page.Items[n-1].id()}
				return page, nil
			}
			page.Items = append(page.Items, a)
		}
		if page.Next, q.After = next.Next, next.Next; page.Next == nil {
			break
		}
	}
	return page, nil
}

// usersWithAccess returns a page of the users that q selects, with the assignments that
// give them the permission of q.
func usersWithAccess(tx *store.Tx, q rolecall.AccessQuery) (page rolecall.Page[Access], err error) {
	users, err := tx.UsersWithAccess(q)
	if err != nil {
		return page, err
	}
	ids := make([]rolecall.UserID, len(users.Items))
	for i := range users.Items {
		ids[i] = users.Items[i].ID
		page.Items = append(page.Items, Access{User: &users.Items[i]})
	}
	assignments, full, err := tx.AccessAssignments(q, ids)
	page.Next = users.Next
	withAssignments(&page, assignments, full)
	return page, err
}

// accountsWithAccess does for service accounts what usersWithAccess does for users.
func accountsWithAccess(tx *store.Tx, q rolecall.AccessQuery) (page rolecall.Page[Access], err error) {
	accounts, err := tx.ServiceAccountsWithAccess(q)
	if err != nil {
		return page, err
	}
	ids := make([]rolecall.ServiceAccountID, len(accounts.Items))
	for i := range accounts.Items {
		ids[i] = accounts.Items[i].ID
		page.Items = append(page.Items, Access{Account: &accounts.Items[i]})
	}
	assignments, full, err := tx.AccountAccessAssignments(q, ids)
	page.Next = accounts.Next
	withAssignments(&page, assignments, full)
	return page, err
}

// withAssignments gives each item of the page its own assignments out of the list, which is sorted by holder. If the
// list is full, the page ends after the last holder in it. It also ends before the item with which it would have
// more than MaxPageBytes bytes.
func withAssignments(page *rolecall.Page[Access], assignments []rolecall.Assignment, full bool) {
	of := map[rolecall.AnyID][]rolecall.Assignment{}
	for _, a := range assignments {
		of[a.Holder.ID] = append(of[a.Holder.ID], a)
	}
	size := 0
	for i := range page.Items {
		id := page.Items[i].id()
		page.Items[i].Assignments = of[id]
		size += page.Items[i].size()
		if i > 0 && (size > rolecall.MaxPageBytes || full && bytes.Compare(id[:], assignments[len(assignments)-1].Holder.ID[:]) > 0) {
			page.Items, page.Next = page.Items[:i], &rolecall.Position{ID: page.Items[i-1].id()}
			break
		}
	}
}
