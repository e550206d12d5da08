//go:build !linux && !darwin

package sqlite

// turn does nothing on systems without flock. A command can fail there while a server writes
// without a pause.
type turn struct{}

func openTurn(string) (turn, error) { return turn{}, nil }

func (turn) take() {}

func (turn) pass() {}

func (turn) close() error { return nil }
