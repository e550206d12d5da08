package directory

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// Directories returns the directories of the tenant, the oldest first. It can fail with ErrPermissionDenied.
func (s *Service) Directories(ctx context.Context, c access.Caller) (all []rolecall.Directory, err error) {
	if err := authz.ReadConnections.Authorize(c.Principal); err != nil {
		return nil, err
	}
	return access.Read(ctx, s.access, c, (*store.Tx).Directories)
}

// Directory returns the directory with the id. It can fail with ErrNotFound or ErrPermissionDenied.
func (s *Service) Directory(ctx context.Context, c access.Caller, id rolecall.DirectoryID) (d rolecall.Directory, err error) {
	if err := authz.ReadConnections.Authorize(c.Principal); err != nil {
		return d, err
	}
	return access.Read(ctx, s.access, c, func(tx *store.Tx) (rolecall.Directory, error) { return tx.Directory(id) })
}

// errTooManyDirectories is the error for a directory above the limit of a tenant.
var errTooManyDirectories = rolecall.ErrLimitReached.With("This tenant has the maximum number of directories, 20. Delete one first.")

// CreateDirectory creates a directory without users, once for each idempotency key. It can fail with
// ErrPermissionDenied, ErrSessionRequired, ErrValidation, ErrLimitReached, ErrDirectoryNameTaken, and the errors of
// idempotency keys.
func (s *Service) CreateDirectory(ctx context.Context, c access.Caller, key idempotency.Key, draft rolecall.DirectoryDraft) (created idempotency.Created[rolecall.Directory], err error) {
	if err := authz.CreateConnection.Authorize(c.Principal); err != nil {
		return created, err
	}
	if err := draft.Check().Err(); err != nil {
		return created, err
	}
	d := draft.Directory(s.now())
	return access.Create(ctx, s.access, c, key, idempotency.Creation[rolecall.Directory]{
		Operation: "createDirectory", ID: rolecall.AnyID(d.ID), Value: d,
		Event: s.access.Event(c, rolecall.EventDirectoryCreated, rolecall.About(d.ID)),
		Insert: func(tx *store.Tx) error {
			tx.LockOwners()
			all, err := tx.Directories()
			if err != nil {
				return err
			}
			if len(all) >= rolecall.DirectoriesMax {
				return errTooManyDirectories
			}
			tx.InsertDirectory(d)
			return nil
		},
		OnlyID: func(id rolecall.AnyID) rolecall.Directory { return rolecall.Directory{ID: rolecall.DirectoryID(id)} },
	})
}

// UpdateDirectory applies the patch to the stored directory. After a concurrent change, it applies the patch to the new
// version. It can fail with ErrPermissionDenied, ErrSessionRequired, ErrValidation, ErrNotFound, ErrPreconditionFailed
// or ErrDirectoryNameTaken.
func (s *Service) UpdateDirectory(ctx context.Context, c access.Caller, id rolecall.DirectoryID, patch rolecall.DirectoryPatch, match Match[rolecall.Directory]) (d rolecall.Directory, err error) {
	if err := authz.UpdateConnection.Authorize(c.Principal); err != nil {
		return d, err
	}
	if err := patch.Check().Err(); err != nil {
		return d, err
	}
	err = s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		old, err := tx.Directory(id)
		if err != nil {
			return nil, err
		}
		if err := match.Check(&old); err != nil {
			return nil, err
		}
		changed, members := patch.Apply(old, s.now())
		if d = changed; members == nil {
			return nil, nil
		}
		if err := store.CheckVersion(tx.UpdateDirectory(old, changed)); err != nil {
			return nil, err
		}
		return changeEvent(s, c, rolecall.EventDirectoryUpdated, rolecall.About(id), &old, &changed, members)
	})
	if err != nil {
		return rolecall.Directory{}, err
	}
	return d, nil
}

// DeleteDirectory deletes the directory with its tokens. Its users and groups remain, without a directory. A background
// task releases the users. It can fail with ErrPermissionDenied, ErrSessionRequired, ErrNotFound or
// ErrPreconditionFailed.
func (s *Service) DeleteDirectory(ctx context.Context, c access.Caller, id rolecall.DirectoryID, match Match[rolecall.Directory]) error {
	if err := authz.DeleteConnection.Authorize(c.Principal); err != nil {
		return err
	}
	err := s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		tx.LockOwners() // no group of the directory is created at the same time
		old, err := tx.Directory(id)
		if err != nil {
			return nil, err
		}
		if err := match.Check(&old); err != nil {
			return nil, err
		}
		event, err := changeEvent(s, c, rolecall.EventDirectoryDeleted, rolecall.About(id), &old, nil, nil)
		if err != nil {
			return nil, err
		}
		if err := s.access.ReleaseGroups(tx, c, rolecall.SourceOf(id), old.Name); err != nil {
			return nil, err
		}
		return event, store.CheckVersion(tx.HideDirectory(old, event.ID))
	})
	if err == nil {
		s.access.Unfinished(c.Tenant.ID)
	}
	return err
}

// continueDirectoryDeletion continues the deletion of a directory. It releases up to access.BatchSize users. It returns
// 0 if the tenant has no such directory. Otherwise, it returns access.BatchSize, and the caller calls it again.
func continueDirectoryDeletion(tx *store.Tx) (int, error) {
	id, err := tx.HiddenDirectory()
	if there, err := access.Found(err); !there {
		return 0, err
	}
	_, err = tx.ReleaseUsers(id, access.BatchSize)
	return access.BatchSize, err
}

// DirectoryToken is a token of a directory with its secret, which only the response to its creation contains.
type DirectoryToken struct {
	rolecall.DirectoryToken
	Secret secret.Token
}

// DirectoryTokens returns the tokens of the directory, the oldest first. It can fail with ErrNotFound or
// ErrPermissionDenied.
func (s *Service) DirectoryTokens(ctx context.Context, c access.Caller, id rolecall.DirectoryID) (all []rolecall.DirectoryToken, err error) {
	return inDirectory(ctx, s, c, id, func(tx *store.Tx) ([]rolecall.DirectoryToken, error) { return tx.DirectoryTokens(id) })
}

// DirectoryRequests returns the last requests of the directory, the newest first. It can fail with ErrNotFound or
// ErrPermissionDenied.
func (s *Service) DirectoryRequests(ctx context.Context, c access.Caller, id rolecall.DirectoryID) (all []rolecall.DirectoryRequest, err error) {
	return inDirectory(ctx, s, c, id, func(tx *store.Tx) ([]rolecall.DirectoryRequest, error) { return tx.DirectoryRequests(id) })
}

// DirectoryContent has the numbers of users and groups that a directory manages.
type DirectoryContent struct{ Users, Groups int }

// DirectoryContent returns how many users and groups the directory manages. It can fail with ErrNotFound or
// ErrPermissionDenied.
func (s *Service) DirectoryContent(ctx context.Context, c access.Caller, id rolecall.DirectoryID) (DirectoryContent, error) {
	return inDirectory(ctx, s, c, id, func(tx *store.Tx) (content DirectoryContent, err error) {
		if content.Users, err = tx.CountDirectoryUsers(rolecall.DirectoryUserQuery{Directory: id}); err != nil {
			return content, err
		}
		groups, err := tx.Groups(rolecall.GroupQuery{Source: rolecall.SourceOf(id), Limit: 1, Count: true})
		if err == nil {
			content.Groups = groups.Total.Count
		}
		return content, err
	})
}

// inDirectory returns the result of read, if the directory exists and the caller may read it.
func inDirectory[T any](ctx context.Context, s *Service, c access.Caller, id rolecall.DirectoryID, read func(*store.Tx) (T, error)) (value T, err error) {
	if err := authz.ReadConnections.Authorize(c.Principal); err != nil {
		return value, err
	}
	return access.Read(ctx, s.access, c, func(tx *store.Tx) (value T, err error) {
		if _, err := tx.Directory(id); err != nil {
			return value, err
		}
		return read(tx)
	})
}

// errTooManyDirectoryTokens is the error for a token above the limit of a directory.
var errTooManyDirectoryTokens = rolecall.ErrLimitReached.With("This directory has the maximum number of tokens, two. Revoke one first.")

// CreateDirectoryToken creates a token of the directory, once for each idempotency key. If the key was used before, the
// result has no secret. It can fail with ErrPermissionDenied, ErrSessionRequired, ErrValidation, ErrNotFound,
// ErrLimitReached, and the errors of idempotency keys.
func (s *Service) CreateDirectoryToken(ctx context.Context, c access.Caller, key idempotency.Key, id rolecall.DirectoryID, draft rolecall.DirectoryTokenDraft) (created idempotency.Created[DirectoryToken], err error) {
	if err := authz.UpdateConnection.Authorize(c.Principal); err != nil {
		return created, err
	}
	now := s.now()
	if err := draft.Check(now).Err(); err != nil {
		return created, err
	}
	token, bearer := draft.DirectoryToken(id, now), secret.NewDirectoryToken()
	token.CreatedBy = c.Grantor()
	stored, err := access.Create(ctx, s.access, c, key, idempotency.Creation[rolecall.DirectoryToken]{
		Operation: "createDirectoryToken", ID: rolecall.AnyID(id), Value: token,
		Event: s.access.Event(c, rolecall.EventDirectoryTokenCreated, rolecall.About(id)),
		Insert: func(tx *store.Tx) error {
			tx.LockOwners()
			if _, err := tx.Directory(id); err != nil {
				return err
			}
			tokens, err := tx.DirectoryTokens(id)
			if err != nil {
				return err
			}
			live := 0
			for i := range tokens {
				if tokens[i].Live(now) {
					live++
				}
			}
			if live >= rolecall.DirectoryTokensMax {
				return errTooManyDirectoryTokens
			}
			tx.InsertDirectoryToken(token, bearer.Hash())
			return nil
		},
	})
	if err != nil {
		return created, err
	}
	created.Value.DirectoryToken, created.Replayed = stored.Value, stored.Replayed
	if !stored.Replayed {
		created.Value.Secret = bearer
	}
	return created, nil
}

// RevokeDirectoryToken revokes a token of the directory. It can fail with ErrPermissionDenied, ErrSessionRequired or
// ErrNotFound.
func (s *Service) RevokeDirectoryToken(ctx context.Context, c access.Caller, id rolecall.DirectoryID, token rolecall.DirectoryTokenID) error {
	if err := authz.RevokeDirectoryToken.Authorize(c.Principal); err != nil {
		return err
	}
	return s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		stored, err := tx.DirectoryToken(id, token)
		if err != nil {
			return nil, err
		}
		if deleted, err := tx.DeleteDirectoryToken(id, token); err != nil {
			return nil, err
		} else if !deleted {
			return nil, rolecall.ErrNotFound
		}
		return changeEvent(s, c, rolecall.EventDirectoryTokenRevoked, rolecall.About(id), &stored, nil, nil)
	})
}

// WarnDirectoryTokens mails the owners about tokens of directories that expire in the next 30 days, once for each token.
// It returns the number of these tokens.
func (s *Service) WarnDirectoryTokens(tenant rolecall.TenantID, tx *store.Tx) (int, error) {
	now := s.now()
	tokens, err := tx.WarnDirectoryTokens(now.Add(rolecall.DirectoryTokenWarning), now)
	if err != nil {
		return 0, err
	}
	for i := range tokens {
		d, err := tx.Directory(tokens[i].DirectoryID)
		if there, err := access.Found(err); err != nil {
			return 0, err
		} else if !there {
			continue
		}
		what := fmt.Sprintf("The token %s of the directory %s expires on %s. Create another token and enter it at the identity provider.",
			tokens[i].Name, d.Name, tokens[i].ExpiresAt.Std().Format("2 January 2006"))
		err = s.access.NotifyOwners(tx, tenant, rolecall.Mail{Kind: rolecall.MailDirectory, What: what})
		if err != nil {
			return 0, err
		}
	}
	return len(tokens), nil
}

// directoryRequests are the requests of directories that are not stored yet. It is safe for concurrent use.
type directoryRequests struct {
	mu      sync.Mutex
	pending map[directoryOf][]rolecall.DirectoryRequest
}

type directoryOf struct {
	tenant    rolecall.TenantID
	directory rolecall.DirectoryID
}

// RecordDirectoryRequest records a request of a directory, for its administrators. FlushDirectoryRequests stores it.
func (s *Service) RecordDirectoryRequest(c access.Caller, r rolecall.DirectoryRequest) {
	key := directoryOf{c.Tenant.ID, rolecall.DirectoryID(c.User.ID)}
	l := &s.requests
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pending == nil {
		l.pending = map[directoryOf][]rolecall.DirectoryRequest{}
	}
	all := append(l.pending[key], r)
	l.pending[key] = all[max(len(all)-rolecall.DirectoryRequestsMax, 0):]
}

// FlushDirectoryRequests stores the recorded requests. If it fails for a directory, the next call stores its requests.
func (s *Service) FlushDirectoryRequests(ctx context.Context) error {
	l := &s.requests
	l.mu.Lock()
	pending := l.pending
	l.pending = nil
	l.mu.Unlock()
	var failures []error
	for of, requests := range pending {
		err := s.store.Update(ctx, of.tenant, func(tx *store.Tx) error { return tx.RecordDirectoryRequests(of.directory, requests) })
		if err == nil || errors.Is(err, rolecall.ErrNotFound) { // deleted since
			continue
		}
		failures = append(failures, err)
		l.mu.Lock()
		if l.pending == nil {
			l.pending = map[directoryOf][]rolecall.DirectoryRequest{}
		}
		all := append(requests, l.pending[of]...)
		l.pending[of] = all[max(len(all)-rolecall.DirectoryRequestsMax, 0):]
		l.mu.Unlock()
	}
	return errors.Join(failures...)
}
