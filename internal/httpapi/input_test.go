package httpapi

import "testing"

func TestTheNilUUIDFiltersNothingAndIsRefused(t *testing.T) {
	s := newTestServer(t)
	const none = "00000000-0000-0000-0000-000000000000"
	for path, fault := range map[string]string{
		"/users?role=" + none:     "role format",
		"/events?actor=" + none:   "actor format",
		"/events?subject=" + none: "subject format",
	} {
		r := s.as(s.owner, "GET", path, "")
		if r.StatusCode != 400 || r.faults(t) != fault {
			t.Errorf("%s: %d %s", path, r.StatusCode, r.body)
		}
	}
	expectProblem(t, s.as(s.owner, "GET", "/roles/"+none+"/users", ""), 404, "not-found")
}

func TestTheUsersOfARoleAreNotFilteredByAnother(t *testing.T) {
	s := newTestServer(t)
	role := s.as(s.owner, "GET", "/roles?key=owner", "").items(t)[0]["id"].(string)
	r := s.as(s.owner, "GET", "/roles/"+role+"/users?role="+role, "")
	if r.StatusCode != 400 || r.faults(t) != "role unknown" {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}
