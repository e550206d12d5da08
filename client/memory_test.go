package client

import (
	"testing"
	"time"
)

// TestMemoryBoundsPermissions keeps principals with many permissions and departments.
func TestMemoryBoundsPermissions(t *testing.T) {
	m := newMemory(3, time.Hour)
	add := func(name byte, permissions, departments int) {
		p := &Principal{Permissions: make([]string, permissions)}
		p.Caller.Type, p.Caller.ID = "user", string(name)
		p.ScopedPermissions = append(p.ScopedPermissions, struct {
			Reach       Reach    `json:"reach"`
			Permissions []string `json:"permissions"`
		}{Reach{Departments: make([]string, departments)}, make([]string, permissions)})
		m.add(memoryKey{name}, "acme", p, time.Now())
	}
	expect := func(names string) {
		t.Helper()
		m.confirm(time.Now())
		kept := ""
		for name := byte('a'); name <= 'e'; name++ {
			if m.get(memoryKey{name}) != nil {
				kept += string(name)
			}
		}
		if kept != names {
			t.Errorf("%q are kept, want %q", kept, names)
		}
	}
	add('b', 0, 50)
	add('a', 100, 50) // 250 of 300
	expect("ab")
	add('b', 0, 50) // again
	m.get(memoryKey{'a'})
	add('c', 0, 1)
	expect("ac")
	add('d', 0, 301)
	expect("")
	add('e', 0, 300)
	expect("e")
}
