// Package gatetest has helpers for tests of the whole program: an origin that logs every
// request, the gate as a process, the commands of scripts, and what decides how much is tested.
// Serve and ServeSite start a gate.
package gatetest

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// An Origin serves the files of a directory over http and https. It logs every request before it
// answers: a request that is not in the log did not reach it.
//
// It is also a proxy that resolves every name to itself, so that tests can use names without
// changing the machine's resolver.
type Origin struct {
	HTTP  string // host:port
	HTTPS string

	dir     string
	servers [2]*http.Server
	log     *os.File
}

// StartOrigin serves dir, logs to logFile, and writes its certificate to caFile. The
// caller must call Close.
//
// It listens on 127.0.0.2 if the machine has that address: for 127.0.0.1 clients use no proxy,
// since no_proxy names it.
func StartOrigin(dir, logFile, caFile string) (*Origin, error) {
	o := &Origin{dir: dir}
	plain, err := listen()
	if err != nil {
		return nil, err
	}
	secure, err := listen()
	if err != nil {
		return nil, err
	}
	if o.log, err = os.Create(logFile); err != nil {
		return nil, err
	}
	certificate, err := newCertificate(caFile)
	if err != nil {
		return nil, err
	}
	o.HTTP, o.HTTPS = plain.Addr().String(), secure.Addr().String()
	quiet := log.New(io.Discard, "", 0) // tests disconnect clients on purpose
	// Two servers: a single one for both may not offer HTTP/2.
	o.servers = [2]*http.Server{
		{Handler: o, ErrorLog: quiet},
		{Handler: o, ErrorLog: quiet, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}}},
	}
	go o.servers[0].Serve(plain)
	go o.servers[1].ServeTLS(secure, "", "")
	return o, nil
}

func listen() (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	return l, err
}

// Close ends the origin and its open connections.
func (o *Origin) Close() {
	for _, s := range o.servers {
		s.Close()
	}
	o.log.Close()
}

func (o *Origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.write(r)
	if r.Method == http.MethodConnect {
		o.tunnel(w)
		return
	}
	h := w.Header()
	body, err := o.file(r.URL.Path)
	if err != nil {
		http.Error(w, "no such file", http.StatusNotFound)
		return
	}
	status := http.StatusOK
	// FILE.headers is the head of the response in CGI's form (RFC 3875, 6.3).
	head, _ := o.file(r.URL.Path + ".headers")
	for line := range strings.Lines(string(head)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch value = strings.TrimSpace(value); {
		case name == "Status" && value == "never":
			<-r.Context().Done()
			return
		case name == "Status" && value == "abort":
			panic(http.ErrAbortHandler)
		case name == "Status":
			status, _ = strconv.Atoi(value)
		default:
			// Unchanged, so that scripts can send names that are not canonical.
			name = textproto.TrimString(name)
			h[name] = append(h[name], value)
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body)
}

func (o *Origin) file(name string) ([]byte, error) {
	if strings.HasSuffix(name, "/") {
		name += "index.html"
	}
	return os.ReadFile(filepath.Join(o.dir, filepath.FromSlash(path.Clean("/"+name))))
}

// write logs a request in the form: GET http://127.0.0.2/page HTTP/1.1 "ExampleBot/1.0"
func (o *Origin) write(r *http.Request) {
	host := (&url.URL{Host: r.Host}).Hostname() // ports differ from run to run
	target := "http://" + host + r.URL.RequestURI()
	switch {
	case r.Method == http.MethodConnect:
		target = r.Host
	case r.URL.IsAbs():
		target = r.URL.String() + " through the parent"
	case r.TLS != nil:
		target = "https://" + host + r.URL.RequestURI()
	}
	fmt.Fprintf(o.log, "%s %s %s %q\n", r.Method, target, r.Proto, r.UserAgent())
}

// tunnel connects every CONNECT to the origin's own TLS port.
func (o *Origin) tunnel(w http.ResponseWriter) {
	client, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer client.Close()
	io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n")
	server, err := net.Dial("tcp", o.HTTPS)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		io.Copy(server, client)
		server.(*net.TCPConn).CloseWrite()
	}()
	io.Copy(client, server)
}
