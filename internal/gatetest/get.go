package gatetest

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdGet is the command get of scripts.
func cmdGet(ts *testscript.TestScript, neg bool, args []string) {
	f := flag.NewFlagSet("get", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	header := http.Header{"User-Agent": {"ExampleBot/1.0"}}
	proxy := f.String("x", ts.Getenv("GATE"), "proxy")
	method := f.String("X", http.MethodGet, "method")
	output := f.String("o", "", "file for the body")
	http2 := f.Bool("http2", false, "HTTP/2, inside TLS")
	f.Func("A", "User-Agent", func(agent string) error { header.Set("User-Agent", agent); return nil })
	f.Func("H", "header line", func(line string) error {
		name, value, _ := strings.Cut(line, ":")
		header.Add(name, strings.TrimSpace(value))
		return nil
	})
	if err := f.Parse(args); err != nil || f.NArg() != 1 {
		ts.Fatalf("usage: get [-x PROXY] [-X METHOD] [-A UA] [-H HEADER]... [-http2] [-o FILE] URL")
	}
	ca := ts.Getenv("GATE_CA")
	if ca != "" {
		ca = ts.MkAbs(ca)
	}
	req, err := http.NewRequest(*method, f.Arg(0), nil)
	ts.Check(err)
	req.Header, req.Host = header, cmp.Or(header.Get("Host"), req.Host)
	transport, err := newTransport(*proxy, ca, *http2)
	ts.Check(err)
	defer transport.CloseIdleConnections()
	head, body, err := send(transport, req)
	switch {
	case err != nil && neg:
		fmt.Fprintln(ts.Stderr(), err)
		return
	case err != nil:
		ts.Fatalf("get %s: %v", req.URL, err)
	case neg:
		ts.Fatalf("get %s succeeds", req.URL)
	}
	io.WriteString(ts.Stdout(), head)
	if *output != "" {
		ts.Check(os.WriteFile(ts.MkAbs(*output), body, 0o644))
		return
	}
	fmt.Fprintf(ts.Stdout(), "\n%s\n", bytes.TrimRight(body, "\n"))
}

// send returns the response to a request: status and sorted headers as text, and the body.
func send(transport *http.Transport, req *http.Request) (head string, body []byte, err error) {
	client := http.Client{Timeout: patience, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	resp, body, err := do(&client, req)
	if err != nil {
		return "", nil, err
	}
	var lines strings.Builder
	fmt.Fprintf(&lines, "%s %s\r\n", resp.Proto, resp.Status)
	err = resp.Header.Write(&lines)
	return strings.ReplaceAll(lines.String(), "\r\n", "\n"), body, err
}

// do returns the response to a request, and its whole body.
func do(client *http.Client, req *http.Request) (*http.Response, []byte, error) {
	resp, err := client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, body, err
}

// newTransport returns a transport that uses a proxy, or none if its URL is empty. It trusts only
// the CA in a file, so that a response over TLS proves that the gate has intercepted the connection.
func newTransport(proxy, caFile string, http2 bool) (*http.Transport, error) {
	t := &http.Transport{
		DisableCompression: true, // bodies are compared without decoding
		TLSClientConfig:    &tls.Config{RootCAs: x509.NewCertPool()},
		ForceAttemptHTTP2:  http2,
	}
	if caFile != "" {
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return nil, err
		}
		t.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem)
	}
	if proxy != "" {
		u, err := url.Parse(proxy)
		if err != nil {
			return nil, err
		}
		t.Proxy = http.ProxyURL(u)
	}
	return t, nil
}

// Fetch is a program that requests the URL in its argument with Go's default client, which is
// configured by the environment alone. It returns the exit status.
func Fetch() int {
	resp, err := http.Get(cmp.Or(append(os.Args, "")[1], "no URL given"))
	if err == nil {
		defer resp.Body.Close()
		fmt.Println(resp.Proto, resp.Status)
		resp.Header.Write(os.Stdout)
		fmt.Println()
		_, err = io.Copy(os.Stdout, resp.Body)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fetch:", err)
		return 1
	}
	return 0
}
