package body

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"robotsgate/htmlmeta"
)

var errCut = errors.New("cut off")

// A wireBody delivers a body in chunks, as a network does, and notes whether two
// read it at once.
type wireBody struct {
	rest   []byte
	chunk  func() int // size of the next one
	end    error      // with which it ends
	joined bool       // the end comes with the last bytes, not after them
	before func()     // called before every chunk; may be nil
	in     chan bool  // of one: held while it is read
	closed bool
}

func (b *wireBody) Read(p []byte) (int, error) {
	select {
	case b.in <- true:
	default:
		panic("two readers at once")
	}
	defer func() { <-b.in }()
	if b.before != nil {
		b.before()
	}
	if len(b.rest) == 0 {
		return 0, b.end
	}
	n := copy(p, b.rest[:min(b.chunk(), len(b.rest))])
	b.rest = b.rest[n:]
	if len(b.rest) == 0 && b.joined {
		return n, b.end
	}
	return n, nil
}

func (b *wireBody) Close() error {
	b.closed = true
	return nil
}

// receive waits for a value of a channel.
func receive[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(30 * time.Second):
		t.Fatalf("%s did not come", what)
		panic("unreachable")
	}
}

func newBody(content []byte, end error, chunk func() int) *wireBody {
	return &wireBody{rest: content, chunk: chunk, end: end, in: make(chan bool, 1)}
}

// However a body is chunked, wherever the scanner is left behind, and however it
// ends, the client reads every byte of it once, and then its end.
func TestTeeKeepsTheBody(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 0))
		content := make([]byte, r.IntN(3000))
		for i := range content {
			content[i] = byte(r.Uint32())
		}
		end := io.EOF
		if r.IntN(3) == 0 {
			end = errCut
		}
		most := r.IntN(4000) - rawSlack // in all, a few kilobytes
		largest := 1 + r.IntN(500)
		body := newBody(bytes.Clone(content), end, func() int { return 1 + r.IntN(largest) })
		body.joined = r.IntN(2) == 0
		tee := NewTee(body, most)
		scans, concurrent := r.IntN(30), r.IntN(2) == 0
		size := 1 + r.IntN(400)

		scanned := make(chan error, 1)
		read := 0
		scan := func(reads int) {
			var err error
			for range reads {
				var n int
				p := make([]byte, size)
				n, err = scannerSide{tee}.Read(p)
				if !bytes.Equal(p[:n], content[read:read+n]) {
					err = fmt.Errorf("the scanner read other bytes at %d", read)
				}
				if read += n; err != nil {
					break
				}
			}
			scanned <- err
		}
		if concurrent { // the client begins while the scanner is at work
			go scan(1000)
		} else {
			scan(scans)
		}
		tee.Leave()
		var client io.Reader = tee
		switch seed % 3 {
		case 1:
			client = iotest.OneByteReader(tee)
		case 2:
			client = iotest.HalfReader(tee)
		}
		got, err := io.ReadAll(client)
		if end == io.EOF && err != nil || end != io.EOF && err != end {
			t.Errorf("seed %d: the client's end is %v, want %v", seed, err, end)
		}
		if !bytes.Equal(got, content) {
			t.Errorf("seed %d: the client read %d bytes, not the %d of the body", seed, len(got), len(content))
		}
		if err := <-scanned; err != nil && err != errLeft && err != errLimit && err != end {
			t.Errorf("seed %d: the scanner's end is %v", seed, err)
		}
		if n, err := (scannerSide{tee}).Read(make([]byte, 1)); n > 0 || err == nil {
			t.Errorf("seed %d: the scanner goes on reading after it was left behind", seed)
		}
		if n, err := tee.Read(make([]byte, 1)); n > 0 || err != end {
			t.Errorf("seed %d: after the end: %d, %v", seed, n, err)
		}
		if t.Failed() {
			return
		}
	}
}

// A scanner that waits for the network when it is left does not hold up the client, which gets
// what the scanner was waiting for.
func TestTeeLeftInTheMiddle(t *testing.T) {
	waiting, goOn := make(chan bool, 10), make(chan bool)
	body := newBody([]byte("onetwo"), io.EOF, func() int { return 3 })
	body.before = func() { waiting <- true; <-goOn }
	tee := NewTee(body, 100)
	scanned := make(chan error, 1)
	go func() {
		_, err := io.ReadAll(scannerSide{tee})
		scanned <- err
	}()
	receive(t, waiting, "the scanner's first read")
	goOn <- true // "one"
	receive(t, waiting, "its second read")
	tee.Leave()
	p := make([]byte, 10)
	if n, err := tee.Read(p); string(p[:n]) != "one" || err != nil {
		t.Fatalf("what had come: got %q, %v", p[:n], err)
	}
	type result struct {
		rest []byte
		err  error
	}
	rest := make(chan result, 1)
	go func() {
		b, err := io.ReadAll(tee)
		rest <- result{b, err}
	}()
	goOn <- true // "two", which the scanner still reads, and may not have
	if err := receive(t, scanned, "the scanner's end"); err != errLeft {
		t.Errorf("the scanner's end: %v", err)
	}
	goOn <- true // the end
	if got := receive(t, rest, "the rest"); string(got.rest) != "two" || got.err != nil {
		t.Errorf("the rest: got %q, %v", got.rest, got.err)
	}
}

func TestTeeLimit(t *testing.T) {
	content := bytes.Repeat([]byte("x"), rawSlack+5000)
	body := newBody(content, io.EOF, func() int { return 700 })
	tee := NewTee(body, 1000)
	got, err := io.ReadAll(scannerSide{tee})
	if err != errLimit || len(got) < rawSlack+1000 || len(got) > rawSlack+1000+700 {
		t.Errorf("the scanner read %d bytes, %v", len(got), err)
	}
	tee.Leave()
	if all, err := io.ReadAll(tee); !bytes.Equal(all, content) || err != nil {
		t.Errorf("the client read %d bytes, %v", len(all), err)
	}
}

func TestTeeClose(t *testing.T) {
	body := newBody([]byte("x"), io.EOF, func() int { return 1 })
	tee := NewTee(body, 10)
	tee.Leave()
	if err := tee.Close(); err != nil || !body.closed {
		t.Errorf("closed: %v, %v", body.closed, err)
	}
}

// What has come in time counts, though the head has no end.
func TestTeeSoFar(t *testing.T) {
	waiting, goOn := make(chan bool, 10), make(chan bool)
	page := "<head><meta name=robots content=noindex><title>"
	body := newBody([]byte(page), io.EOF, func() int { return len(page) })
	body.before = func() {
		if len(body.rest) == 0 {
			waiting <- true
			<-goOn
		}
	}
	tee := NewTee(body, 1000)
	done := make(chan htmlmeta.Result, 1)
	go func() { done <- tee.Scan(htmlmeta.Options{ContentType: "text/html"}) }()
	receive(t, waiting, "the read after the last byte")
	res := tee.ScanSoFar(htmlmeta.Options{ContentType: "text/html"})
	if res.Complete || res.Why != "timeout" || len(res.Metas) != 1 || res.Metas[0].Content != "noindex" {
		t.Errorf("so far: %+v", res)
	}
	close(goOn)
	if res := receive(t, done, "the scan"); res.Complete {
		t.Errorf("the scan left behind: %+v", res)
	}
	if all, err := io.ReadAll(tee); string(all) != page || err != nil {
		t.Errorf("the client read %q, %v", all, err)
	}
}

// The result says why a head was not read to its end.
func TestTeeScan(t *testing.T) {
	for _, c := range []struct {
		page     string
		end      error
		complete bool
		why      string
	}{
		{"<title>x</title><body>", errCut, true, ""},
		{"<title>x", io.EOF, true, ""}, // the end of the page is the end of its head
		{"<title>" + strings.Repeat("x", rawSlack+20), io.EOF, false, "limit"},
		{"<title>x", errCut, false, ""}, // and so does the response
	} {
		tee := NewTee(newBody([]byte(c.page), c.end, func() int { return 30 }), 10)
		if res := tee.Scan(htmlmeta.Options{ContentType: "text/html"}); res.Why != c.why || res.Complete != c.complete {
			t.Errorf("%.30q, %v: got %+v, want complete: %v, %q", c.page, c.end, res, c.complete, c.why)
		}
	}
}

// A coded head in the beginning of a body is read of that alone; one that goes on behind it is read to its end, however
// the body arrives.
func TestTeeCoded(t *testing.T) {
	noise := make([]byte, 8<<10)
	rand.NewChaCha8([32]byte{}).Read(noise)
	text := hex.EncodeToString(noise)
	for name, c := range map[string]struct {
		page  string
		metas int
	}{
		"in the beginning": {"<meta name=robots content=noindex><body>" + text, 1},
		"behind it":        {"<meta name=robots content=noindex><script>" + text + "</script><meta name=robots content=nofollow><body>", 2},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			w := gzip.NewWriter(&b)
			io.WriteString(w, c.page)
			w.Close()
			o := htmlmeta.Options{ContentType: "text/html", ContentEncoding: "gzip"}
			for _, piece := range []int{1, 600, b.Len()} {
				tee := NewTee(newBody(bytes.Clone(b.Bytes()), io.EOF, func() int { return piece }), 1<<20)
				if res := tee.Scan(o); !res.Complete || len(res.Metas) != c.metas {
					t.Errorf("in pieces of %d bytes: got %+v", piece, res)
				}
				tee.Leave()
				if got, err := io.ReadAll(tee); !bytes.Equal(got, b.Bytes()) || err != nil {
					t.Errorf("in pieces of %d bytes: the client read %d bytes of %d, %v", piece, len(got), b.Len(), err)
				}
			}
			broken := append(bytes.Clone(b.Bytes()[:firstCoded]), "what is no gzip"...)
			tee := NewTee(newBody(broken, io.EOF, func() int { return len(broken) }), 1<<20)
			if res := tee.Scan(o); res.Complete != (c.metas == 1) {
				t.Errorf("the beginning alone: got %+v", res)
			}
		})
	}
}
