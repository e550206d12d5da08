package main

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestRequestsToClustersAlternateBetweenTenants(t *testing.T) {
	first, second := ofTenant("first", []string{get("/users/1", "a"), get("/users/2", "a")}), ofTenant("second", []string{get("/users/3", "b")})
	all := inTurn([][]string{first, second})
	if !slices.Equal(all, []string{first[0], second[0], first[1]}) {
		t.Errorf("got %q", all)
	}
	if !strings.Contains(all[1], "\r\nX-Tenant-Schema: second\r\n") || strings.Contains(all[1], "X-Tenant-Schema: "+tenant) {
		t.Errorf("not of the tenant: %q", all[1])
	}
}

func TestTheReportOfClustersHasEveryCost(t *testing.T) {
	r := &citusReport{Shares: (&shares{problem: errors.New("not permitted")}).String(), Rows: []citusRow{
		{Operation: "read a user", Workers: 2, Rate: 1234, Coordinator: 300, EachWorker: []float64{150, 170}, Rolecall: 90, Others: 0.1},
	}}
	var text bytes.Buffer
	if err := r.write(&text); err != nil {
		t.Fatal(err)
	}
	for _, wanted := range []string{"not permitted", "0.10 cores", "coordinator and two workers", "  300 ", "  150 170 ", "  620 ", "  90 ", rate(1234)} {
		if !strings.Contains(text.String(), wanted) {
			t.Errorf("%q is missing in\n%s", wanted, text.String())
		}
	}
}
