package main

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
)

// certificate is the TLS certificate of a listener. Each handshake checks whether the certificate
// files have changed. This check is cheap compared with the handshake. After a renewal, the next
// connection uses the new certificate, without a signal or restart.
type certificate struct {
	certFile, keyFile string
	logger            *slog.Logger

	mu      sync.Mutex
	read    [2]fileState // states of the files at the last read
	current *tls.Certificate
}

// fileState identifies a version of a file. It is used to detect changes of the content.
type fileState struct {
	modified int64 // nanoseconds
	size     int64
}

// loadCertificate loads the certificate from the files.
func loadCertificate(certFile, keyFile string, logger *slog.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, logger: logger, read: stateOf(certFile, keyFile)}
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert, --tls-key: %w", err)
	}
	c.current = &pair
	return c, nil
}

// config returns the TLS configuration with the certificate. For TLS 1.2, it allows only cipher
// suites with authenticated encryption, so none with CBC.
func (c *certificate) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.forHandshake, CipherSuites: []uint16{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	}}
}

// forHandshake returns the certificate that the files contain. If the files cannot be loaded, it
// returns the previous certificate. This happens, for example, while only one of the two files has
// been replaced.
func (c *certificate) forHandshake(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	state := stateOf(c.certFile, c.keyFile)
	if state == c.read {
		return c.current, nil
	}
	c.read = state
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		c.logger.Warn("cannot load the changed certificate; still serving the previous one", "error", err)
		return c.current, nil
	}
	c.current = &pair
	c.logger.Info("serving the changed certificate", "expires", pair.Leaf.NotAfter)
	return c.current, nil
}

// stateOf returns the states of the two files. The state of a missing file is zero.
func stateOf(certFile, keyFile string) [2]fileState {
	var states [2]fileState
	for i, file := range []string{certFile, keyFile} {
		if info, err := os.Stat(file); err == nil {
			states[i] = fileState{info.ModTime().UnixNano(), info.Size()}
		}
	}
	return states
}
