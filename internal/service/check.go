package service

import "github.com/rolecall/rolecall"

// Check returns nil if the caller holds the permission: for users of the
// department, or without one in the whole tenant; else ErrPermissionDenied.
func (s *Service) Check(c Call, permission rolecall.Permission, department *string) error {
	reach := c.Reach(permission)
	if reach.IsEverywhere() || department != nil && reach.Includes(department) {
		return nil
	}
	return denied(permission)
}
