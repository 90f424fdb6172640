package body

import (
	"io"
	"robotsgate/htmlmeta"
	"strings"
	"testing"
)

// A pieceBody comes in pieces, and is at hand as long as there are some.
type pieceBody struct {
	pieces  []string
	err     error // behind the last
	joined  bool  // the error comes with it
	reads   int
	unknown bool // it does not tell what is at hand
}

func (b *pieceBody) AtHand() bool         { return !b.unknown && len(b.pieces) > 0 }
func (b *pieceBody) Peek() ([]byte, bool) { return nil, false }

func (b *pieceBody) Read(p []byte) (int, error) {
	b.reads++
	if len(b.pieces) == 0 {
		return 0, b.err
	}
	n := copy(p, b.pieces[0])
	if b.pieces[0] = b.pieces[0][n:]; b.pieces[0] == "" {
		b.pieces = b.pieces[1:]
	}
	if len(b.pieces) == 0 && b.joined {
		return n, b.err
	}
	return n, nil
}

func (b *pieceBody) ReadArrived(p []byte) (int, error) { return b.Read(p) }
func (b *pieceBody) Close() error                      { return nil }

// TestTeeReadsOn: behind what was kept, the client's first piece holds what is at hand; an
// error that comes with it is told once, and the body is not asked again.
func TestTeeReadsOn(t *testing.T) {
	const head = "<meta name=robots content=noindex><body>"
	for name, k := range map[string]struct {
		body  pieceBody
		here  bool
		room  int
		first string
		err   error // with the first
		then  string
		end   error
	}{
		"all is kept":        {pieceBody{pieces: []string{head}, err: io.EOF, joined: true}, true, 99, head, io.EOF, "", io.EOF},
		"a piece at hand":    {pieceBody{pieces: []string{head, "ab", "cd"}, err: io.EOF}, true, 99, head + "ab", nil, "cd", io.EOF},
		"the end in it":      {pieceBody{pieces: []string{head, "ab"}, err: io.EOF, joined: true}, true, 99, head + "ab", io.EOF, "", io.EOF},
		"it breaks off":      {pieceBody{pieces: []string{head, "ab"}, err: errCut, joined: true}, true, 99, head + "ab", errCut, "", errCut},
		"room for a byte":    {pieceBody{pieces: []string{head, "ab"}, err: io.EOF}, true, len(head) + 1, head + "a", nil, "b", io.EOF},
		"room for the kept":  {pieceBody{pieces: []string{head, "ab"}, err: io.EOF}, true, len(head), head, nil, "ab", io.EOF},
		"room for less":      {pieceBody{pieces: []string{head, "ab"}, err: io.EOF}, true, 9, head[:9], nil, head[9:] + "ab", io.EOF},
		"not known at hand":  {pieceBody{pieces: []string{head, "ab"}, err: io.EOF}, false, 99, head, nil, "ab", io.EOF},
		"nothing at hand":    {pieceBody{pieces: []string{head}, err: io.EOF}, true, 99, head, nil, "", io.EOF},
		"breaks off, unread": {pieceBody{pieces: []string{head}, err: errCut}, true, 99, head, nil, "", errCut},
	} {
		t.Run(name, func(t *testing.T) {
			body := &k.body
			body.unknown = !k.here
			tee := NewTee(body, 1<<20)
			o := htmlmeta.Options{ContentType: "text/html"}
			if _, ok := tee.ScanAtHand(o); !ok {
				tee.Scan(o)
			}
			tee.Leave()
			p := make([]byte, k.room)
			n, err := tee.Read(p)
			if string(p[:n]) != k.first || err != k.err {
				t.Errorf("read %q, %v, want %q, %v", p[:n], err, k.first, k.err)
			}
			if asked := body.reads; k.err != nil {
				if n, err := tee.ReadArrived(p); n > 0 || err != nil {
					t.Errorf("ReadArrived: %d bytes, %v", n, err)
				}
				if n, err := tee.Read(p); n > 0 || err != k.end {
					t.Errorf("read then %d bytes, %v, want %v", n, err, k.end)
				}
				if body.reads > asked {
					t.Error("the body was asked behind its end")
				}
				return
			}
			var got strings.Builder
			_, err = io.Copy(&got, struct{ io.Reader }{tee})
			if k.end == io.EOF {
				k.end = nil
			}
			if got.String() != k.then || err != k.end {
				t.Errorf("read then %q, %v, want %q, %v", got.String(), err, k.then, k.end)
			}
		})
	}
}

// TestTeeReadArrived: more is the body's once all that was kept has been read.
func TestTeeReadArrived(t *testing.T) {
	const head = "<meta name=robots content=noindex><body>"
	body := &pieceBody{pieces: []string{head, "ab", "cd"}, err: io.EOF, joined: true}
	body.unknown = true // so that the first piece ends with what was kept
	tee := NewTee(body, 1<<20)
	tee.Scan(htmlmeta.Options{ContentType: "text/html"})
	tee.Leave()
	p := make([]byte, 99)
	if n, err := tee.ReadArrived(p); n > 0 || err != nil {
		t.Errorf("before what was kept: %d bytes, %v", n, err)
	}
	if n, err := tee.Read(p); string(p[:n]) != head || err != nil {
		t.Fatalf("read %q, %v", p[:n], err)
	}
	tee.reading = true
	if n, err := tee.ReadArrived(p); n > 0 || err != nil {
		t.Errorf("beside the scanner: %d bytes, %v", n, err)
	}
	tee.reading = false
	for _, want := range []struct {
		text string
		err  error
	}{{"ab", nil}, {"cd", io.EOF}, {"", nil}} {
		if n, err := tee.ReadArrived(p); string(p[:n]) != want.text || err != want.err {
			t.Errorf("ReadArrived: %q, %v, want %q, %v", p[:n], err, want.text, want.err)
		}
	}
	if n, err := tee.Read(p); n > 0 || err != io.EOF {
		t.Errorf("behind the end: %d bytes, %v", n, err)
	}
}
