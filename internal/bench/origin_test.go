//go:build unix

package bench

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// pages are the pages of the origin by path. Paths under /no/ are denied.
var pages = map[string]page{
	"/1k":      {"application/octet-stream", "", bytes.Repeat([]byte("robotsgate.0123"), 69)[:1024]},
	"/html":    {"text/html; charset=utf-8", "", html},
	"/html.gz": {"text/html; charset=utf-8", "gzip", zipped(html)},
	"/1m":      {"application/octet-stream", "", bytes.Repeat([]byte("0123456789abcdef"), 1<<16)},
	"/no/1k":   {"text/plain", "", []byte("crawlers never see it")},
}

type page struct {
	contentType, encoding string
	body                  []byte
}

// html is a page of 33 KB with a usual head, and text that gzip compresses to a third.
var html = func() []byte {
	var b strings.Builder
	b.WriteString("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>A page</title>\n")
	for i := range 20 {
		fmt.Fprintf(&b, "<link rel=\"stylesheet\" href=\"/assets/%d.css\"><meta property=\"og:tag\" content=\"value %d\">\n", i, i)
	}
	b.WriteString("<meta name=\"robots\" content=\"max-snippet:20, noarchive\"><meta name=\"description\" content=\"for measuring\">\n</head><body>\n")
	random := rand.New(rand.NewPCG(1, 2)) // the same in every run
	word := func() string {
		var syllables strings.Builder
		for range 1 + random.IntN(3) {
			syllables.WriteString(string("bcdfghklmnprstvw"[random.IntN(16)]) + string("aeiou"[random.IntN(5)]))
		}
		return syllables.String()
	}
	words := make([]string, 500)
	for i := range words {
		words[i] = word()
	}
	some := func() string {
		text := make([]string, 8)
		for i := range text {
			text[i] = words[min(random.IntN(500), random.IntN(500))]
		}
		return strings.Join(text, " ")
	}
	for b.Len() < 33<<10 {
		fmt.Fprintf(&b, "<p>%s, <a href=\"/%s\">%s</a>, %s.</p>\n", some(), words[random.IntN(500)], some(), some())
	}
	return []byte(b.String())
}()

func zipped(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(data)
	w.Close()
	return b.Bytes()
}

// robotsTxt returns a file with this number of rules, of which one denies /no/.
func robotsTxt(rules int) []byte {
	var b strings.Builder
	b.WriteString("User-agent: *\nDisallow: /no/\n")
	for i := 1; i < rules; i++ {
		if i%10 == 0 {
			fmt.Fprintf(&b, "Disallow: /*/print-%d$\n", i)
			continue
		}
		fmt.Fprintf(&b, "Disallow: /section-%d/private/\n", i)
	}
	return []byte(b.String())
}

// The numbers of rules of the origins at the ports without TLS. A robots.txt with broadRules has some 640 bytes.
const fewRules, broadRules = 10, 20

// serveOrigin serves the pages at every address of loopback, each of which is another
// origin. It prints its ports: without TLS that of the benchmark and that of a broad crawl, and one with TLS.
func serveOrigin(certificate string) error {
	cert, err := tls.LoadX509KeyPair(certificate, certificate)
	if err != nil {
		return err
	}
	few, err := net.Listen("tcp4", ":0")
	if err != nil {
		return err
	}
	broad, err := net.Listen("tcp4", ":0")
	if err != nil {
		return err
	}
	secure, err := net.Listen("tcp4", ":0")
	if err != nil {
		return err
	}
	failed := make(chan error)
	serve := func(l net.Listener, rules int, config *tls.Config) {
		s := &http.Server{Handler: originHandler(rules), ErrorLog: log.New(io.Discard, "", 0), TLSConfig: config}
		if config != nil {
			failed <- s.ServeTLS(l, "", "")
		}
		failed <- s.Serve(l)
	}
	go serve(few, fewRules, nil)
	go serve(broad, broadRules, nil)
	go serve(secure, fewRules, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"http/1.1"}})
	fmt.Println(port(few), port(broad), port(secure))
	return <-failed
}

func port(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

func originHandler(rules int) http.Handler {
	robots := robotsTxt(rules)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		if r.URL.Path == "/robots.txt" {
			h["Content-Type"] = []string{"text/plain"}
			fmt.Fprintf(w, "# of %s\n%s", r.Host, robots) // a different file for each origin
			return
		}
		p, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		h["Content-Type"] = []string{p.contentType}
		h["Content-Length"] = []string{strconv.Itoa(len(p.body))}
		if p.encoding != "" {
			h["Content-Encoding"] = []string{p.encoding}
		}
		w.Write(p.body)
	})
}
