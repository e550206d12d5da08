package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// keyPair is a self-signed certificate for 127.0.0.1 and its key.
type keyPair struct {
	serial   int64
	cert     []byte // PEM
	key      []byte // PEM
	trusting *x509.CertPool
}

func newKeyPair(t *testing.T, serial int64) keyPair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pair := keyPair{
		serial:   serial,
		cert:     pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:      pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
		trusting: x509.NewCertPool(),
	}
	pair.trusting.AppendCertsFromPEM(pair.cert)
	return pair
}

// replace replaces the file by a rename, as certificate renewal tools do.
func replace(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file+".new", content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}

// serialServed opens a new connection and returns the serial number of the server's certificate.
// The certificate must be valid for the pool.
func serialServed(t *testing.T, address string, trusting *x509.CertPool) int64 {
	t.Helper()
	conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: trusting})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

func TestRenewedCertificateIsServedWithoutARestart(t *testing.T) {
	t.Parallel()
	folder := newTenant(t)
	cert, key := filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	first, second := newKeyPair(t, 1), newKeyPair(t, 2)
	replace(t, cert, first.cert)
	replace(t, key, first.key)
	s := startServer(t, folder, "--tls-cert", cert, "--tls-key", key, "--public-url", "https://127.0.0.1")
	expect := func(when string, pair keyPair) {
		t.Helper()
		if got := serialServed(t, s.address, pair.trusting); got != pair.serial {
			t.Errorf("%s certificate %d is served, want %d", when, got, pair.serial)
		}
	}
	expect("at first", first)
	replace(t, cert, second.cert)
	expect("with half of the pair replaced", first)
	replace(t, key, second.key)
	expect("with the pair replaced", second)
	replace(t, cert, []byte("no certificate"))
	expect("with a broken file", second)
	if err := os.Remove(cert); err != nil {
		t.Fatal(err)
	}
	expect("with a file gone", second)
	third := newKeyPair(t, 3)
	replace(t, cert, third.cert)
	replace(t, key, third.key)
	expect("renewed once more", third)
	if line := s.waitLog("cannot load the changed certificate; still serving the previous one"); line.Level != "WARN" {
		t.Errorf("logged as %s", line.Level)
	}
	s.waitLog("serving the changed certificate")
}

// serveTLS starts the program with a new certificate, and returns the process and the certificate.
func serveTLS(t *testing.T) (*process, keyPair) {
	t.Helper()
	folder := newTenant(t)
	pair := newKeyPair(t, 1)
	replace(t, filepath.Join(folder, "cert.pem"), pair.cert)
	replace(t, filepath.Join(folder, "key.pem"), pair.key)
	return startServer(t, folder, "--tls-cert", "cert.pem", "--tls-key", "key.pem", "--public-url", "https://127.0.0.1"), pair
}

func TestTLS12OffersNoCBC(t *testing.T) {
	s, pair := serveTLS(t)
	for suite, want := range map[uint16]bool{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256:       true,
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384:       true,
		tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: true,
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA:          false,
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA:          false,
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256:       false,
	} {
		conn, err := tls.Dial("tcp", s.address, &tls.Config{RootCAs: pair.trusting, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{suite}})
		if (err == nil) != want {
			t.Errorf("%s: %v, want it served: %v", tls.CipherSuiteName(suite), err, want)
		}
		if err == nil {
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestErrorsOfHTTP2AreNoWarnings(t *testing.T) {
	s, pair := serveTLS(t)
	conn, err := tls.Dial("tcp", s.address, &tls.Config{RootCAs: pair.trusting, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if line := s.waitLog("client connection failed"); line.Level != "INFO" {
		t.Errorf("a broken preface is logged as %s", line.Level)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	folder := newTenant(t)
	pair := newKeyPair(t, 1)
	replace(t, filepath.Join(folder, "cert.pem"), pair.cert)
	replace(t, filepath.Join(folder, "key.pem"), pair.key)
	for _, test := range []struct {
		public []string
		hsts   bool
	}{{[]string{"--public-url", "https://127.0.0.1"}, true}, {nil, false}} {
		s := startServer(t, folder, append([]string{"--tls-cert", "cert.pem", "--tls-key", "key.pem"}, test.public...)...)
		for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
			transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pair.trusting}, ForceAttemptHTTP2: protocol == "HTTP/2.0"}
			answer, err := (&http.Client{Transport: transport}).Get("https://" + s.address + "/readyz")
			if err != nil {
				t.Fatal(err)
			}
			if err := answer.Body.Close(); err != nil {
				t.Fatal(err)
			}
			transport.CloseIdleConnections()
			if answer.StatusCode != http.StatusOK || answer.Proto != protocol || answer.TLS.Version < tls.VersionTLS12 {
				t.Errorf("%s: %d over %s, TLS %x", protocol, answer.StatusCode, answer.Proto, answer.TLS.Version)
			}
			if got := answer.Header.Get("Strict-Transport-Security") != ""; got != test.hsts {
				t.Errorf("public URL %q: HSTS %v", test.public, got)
			}
		}
		old := &tls.Config{RootCAs: pair.trusting, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
		if _, err := tls.Dial("tcp", s.address, old); err == nil || !strings.Contains(err.Error(), "protocol version") {
			t.Errorf("TLS 1.1: %v", err)
		}
		if got := s.get("/readyz").StatusCode; got != http.StatusBadRequest {
			t.Errorf("without TLS: %d", got)
		}
		if line := s.waitLog("client connection failed"); line.Level != "INFO" {
			t.Errorf("a failed handshake is logged as %s", line.Level)
		}
		if err := s.stop(os.Interrupt); err != nil {
			t.Errorf("stopped: %v", err)
		}
	}
}
