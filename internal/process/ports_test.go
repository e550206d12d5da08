package process

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

const addressCount = 300

func addresses(t *testing.T) (all []string) {
	t.Helper()
	for range addressCount {
		address, err := FreeAddress()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, address)
	}
	return all
}

// Nothing listens on the addresses, as before the start of a program. Another process must not get them.
func TestProcessesGetDifferentAddresses(t *testing.T) {
	const variable = "ROLECALL_TEST_ADDRESSES"
	all := addresses(t)
	if os.Getenv(variable) != "" {
		fmt.Println(strings.Join(all, "\n"))
		return
	}
	command := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v=false")
	command.Env = append(os.Environ(), variable+"=1")
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	given := map[string]bool{}
	for _, address := range all {
		given[address] = true
	}
	for address := range strings.Lines(string(output)) {
		if address = strings.TrimSpace(address); given[address] {
			t.Errorf("%s was given twice", address)
		}
		given[address] = true
	}
	if len(given) < 2*addressCount {
		t.Errorf("%d addresses", len(given))
	}
}
