package app

import (
	"errors"
	"net"
	"testing"
)

func TestShutTakesInWhoIsWaiting(t *testing.T) {
	const waiting = 50
	listener, err := listen(t.Context(), "--listen", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for range waiting {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	d := newDoor(listener)
	first, err := d.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if err := d.shut(); err != nil {
		t.Fatal(err)
	}
	for i := 1; i < waiting; i++ {
		conn, err := d.Accept()
		if err != nil {
			t.Fatalf("%d of %d were let in: %v", i, waiting, err)
		}
		defer conn.Close()
	}
	if conn, err := d.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after the last one: %v, %v", conn, err)
	}
	if conn, err := net.Dial("tcp", listener.Addr().String()); err == nil {
		t.Errorf("a newcomer got in: %v", conn.LocalAddr())
	}
}
