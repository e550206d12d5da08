package service

import "github.com/rolecall/rolecall"

// Holds reports whether the caller holds the permission: for users of the department,
// or without one in the whole tenant. It reads only the caller's principal.
func (s *Service) Holds(c Call, permission rolecall.Permission, department *string) bool {
	reach := c.Reach(permission)
	return reach.IsEverywhere() || department != nil && reach.Includes(department)
}

// Check returns nil if Holds returns true, else ErrPermissionDenied.
func (s *Service) Check(c Call, permission rolecall.Permission, department *string) error {
	if s.Holds(c, permission, department) {
		return nil
	}
	return denied(permission)
}
