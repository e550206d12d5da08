package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// healthLimit is how long the node may take to answer.
const healthLimit = 5 * time.Second

// served has the flags of serve that say at which addresses a node answers.
type served struct {
	Listen    string `group:"Addresses and TLS:" default:"127.0.0.1:8080" placeholder:"ADDRESS" help:"Address at which the node listens. Default: ${default}"`
	PublicURL string `group:"Addresses and TLS:" name:"public-url" placeholder:"URL" help:"URL that clients use. Default: the address of --listen"`
	TLSCert   string `group:"Addresses and TLS:" name:"tls-cert" placeholder:"FILE" help:"PEM certificate chain with which the node serves HTTPS. Default: plain http"`
}

// local returns the URL of the service for programs on this machine.
func (s *served) local() (string, error) {
	host, port, err := net.SplitHostPort(s.Listen)
	if err != nil || strings.HasPrefix(s.Listen, "fd:") {
		return "", fmt.Errorf("--listen %s is not an address on the network: set --url", s.Listen)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	scheme, path := "http", ""
	if s.TLSCert != "" {
		scheme = "https"
	}
	if public, err := url.Parse(s.PublicURL); err == nil {
		path = strings.TrimSuffix(public.Path, "/")
	}
	return scheme + "://" + net.JoinHostPort(host, port) + path, nil
}

// console returns the address of the console of a tenant, or only its path if the address of the node is not
// known.
func (s *served) console(tenant string) string {
	base := strings.TrimSuffix(s.PublicURL, "/")
	if local, err := s.local(); base == "" && err == nil {
		base = local
	}
	return base + "/console/" + tenant
}

// healthCommand checks a node that runs.
type healthCommand struct {
	served
	URL string `name:"url" placeholder:"URL" help:"Address to check, such as http://127.0.0.1:8080/livez. Default: /readyz at the address of --listen"`
}

// Run sends the request. It returns an error if the answer is not 200.
func (c *healthCommand) Run(ctx context.Context, p *program) error {
	address := c.URL
	if address == "" {
		base, err := c.local()
		if err != nil {
			return err
		}
		address = base + "/readyz"
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if c.URL == "" && c.TLSCert != "" {
		config, err := trusting(c.TLSCert)
		if err != nil {
			return err
		}
		transport := &http.Transport{TLSClientConfig: config}
		defer transport.CloseIdleConnections()
		client.Transport = transport
	}
	ctx, cancel := context.WithTimeout(ctx, healthLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fmt.Errorf("--url: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("the node does not answer: %w", err)
	}
	_, err = io.Copy(io.Discard, response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", address, response.Status)
	}
	return p.print(done{"ready"}, address+" answered 200.")
}

// trusting returns a configuration that accepts only the certificate in the file, under a name that it has,
// because the address of this machine is usually not one of them.
func trusting(file string) (*tls.Config, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert: %w", err)
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, fmt.Errorf("--tls-cert: %s has no certificate in PEM", file)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert: %w", err)
	}
	names := certificate.DNSNames
	for _, ip := range certificate.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("--tls-cert: the certificate in %s has no name", file)
	}
	roots := x509.NewCertPool()
	roots.AddCert(certificate)
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: strings.Replace(names[0], "*", "node", 1)}, nil
}
