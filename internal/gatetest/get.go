package gatetest

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
)

// A request is the request of the command get.
type request struct {
	proxy   string // empty: none
	caFile  string
	method  string
	agent   string
	headers headers
	http2   bool
	output  string // file for the body; empty: printed
	url     string
}

type headers []string

func (h *headers) String() string     { return strings.Join(*h, ", ") }
func (h *headers) Set(s string) error { *h = append(*h, s); return nil }

// parseRequest reads the arguments of get.
func parseRequest(args []string) (*request, error) {
	r := &request{}
	f := flag.NewFlagSet("get", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&r.proxy, "x", "", "proxy, in place of $GATE")
	f.StringVar(&r.method, "X", http.MethodGet, "method")
	f.StringVar(&r.agent, "A", "ExampleBot/1.0", "User-Agent")
	f.StringVar(&r.output, "o", "", "file for the body")
	f.Var(&r.headers, "H", "header line")
	f.BoolVar(&r.http2, "http2", false, "HTTP/2, inside TLS")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() != 1 {
		return nil, fmt.Errorf("usage: get [-x PROXY] [-X METHOD] [-A UA] [-H HEADER]... [-http2] [-o FILE] URL")
	}
	r.url = f.Arg(0)
	return r, nil
}

// do sends the request and prints the response: status, headers in order, body.
func (r *request) do(w io.Writer) error {
	transport, err := r.transport()
	if err != nil {
		return err
	}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequest(r.method, r.url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", r.agent)
	for _, line := range r.headers {
		name, value, _ := strings.Cut(line, ":")
		if value = strings.TrimSpace(value); name == "Host" {
			req.Host = value
		} else {
			req.Header.Add(name, value)
		}
	}
	client := http.Client{Timeout: patience, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s %s\n", resp.Proto, resp.Status)
	for _, name := range slices.Sorted(maps.Keys(resp.Header)) {
		for _, value := range resp.Header[name] {
			fmt.Fprintf(w, "%s: %s\n", name, value)
		}
	}
	if r.output != "" {
		return os.WriteFile(r.output, body, 0o644)
	}
	_, err = fmt.Fprintf(w, "\n%s\n", bytes.TrimRight(body, "\n"))
	return err
}

// flood sends the request n times at once, each over its own connection. It returns all errors.
func (r *request) flood(n int) error {
	transport, err := r.transport()
	if err != nil {
		return err
	}
	defer transport.CloseIdleConnections()
	client := http.Client{Timeout: patience, Transport: transport}
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			resp, err := client.Get(r.url)
			if err != nil {
				errs[i] = err
				return
			}
			defer resp.Body.Close()
			if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
				errs[i] = errors.Join(err, errors.New(resp.Status))
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// transport returns a transport that trusts only the gate's CA, so that a response over TLS proves
// that the gate has intercepted the connection.
func (r *request) transport() (*http.Transport, error) {
	t := &http.Transport{
		DisableCompression: true, // bodies are printed without decoding
		TLSClientConfig:    &tls.Config{RootCAs: x509.NewCertPool()},
		ForceAttemptHTTP2:  r.http2,
	}
	if r.caFile != "" {
		pem, err := os.ReadFile(r.caFile)
		if err != nil {
			return nil, err
		}
		t.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem)
	}
	if r.proxy != "" {
		proxy, err := url.Parse(r.proxy)
		if err != nil {
			return nil, err
		}
		t.Proxy = http.ProxyURL(proxy)
	}
	return t, nil
}

// Get returns the body at a URL, requested without a proxy.
func Get(url string) (string, error) {
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := (&http.Client{Timeout: patience, Transport: transport}).Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return string(body), err
}

// Fetch is a program that requests the URL in its argument with Go's default client, which is
// configured by the environment alone. It returns the exit status.
func Fetch() int {
	resp, err := http.Get(cmp.Or(append(os.Args, "")[1], "no URL given"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "fetch:", err)
		return 1
	}
	defer resp.Body.Close()
	fmt.Println(resp.Proto, resp.Status)
	resp.Header.Write(os.Stdout)
	fmt.Println()
	if _, err := io.Copy(os.Stdout, resp.Body); err != nil {
		fmt.Fprintln(os.Stderr, "fetch:", err)
		return 1
	}
	return 0
}
