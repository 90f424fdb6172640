package evidence

import (
	"bytes"
	"crypto/sha256"
	"testing"
	"time"

	"robotsgate/internal/record"
)

// entry is the line of an entry, as long as most are, without its place in the log.
const entry = `{"time":"2026-11-24T21:21:04.389466131Z","id":"FWF6GROGKWLSEVRIPW7TPYU7UU","crawler":"default","client":"127.0.0.1","method":"GET","origin":"http://www.example.com","path":"/2.txt","decision":"allow","reason":"no-match","group":"*","token":"ExampleBot","decided":"2026-11-24T21:21:04.389480788Z","robots":{"url":"http://www.example.com/robots.txt","state":"fresh","age":0,"judged":"2026-11-24T21:21:04.389516445Z","status":200,"sha256":"efc4db5408347a17597d7618522f084512d5d8d9ff46135129e293e4dee3355a","fetched":"2026-11-24T21:21:04.386969177Z"},"status":200,"bytes":13,"duration":0.000624852,"config":"83d42361cad107751c9e011f2414e7380f70ece3db2ba7ddac15b78edc6edcb3","gate":"gate-a"}` + "\n"

func newBenchLog(b *testing.B) *Log {
	l, err := OpenLog(Options{Name: testLog, Gate: "gate-a", Key: newKey(1), Place: record.ReadPlace, Dir: b.TempDir(), Path: "audit.jsonl"})
	if err != nil {
		b.Fatal(err)
	}
	return l
}

// BenchmarkLink is the cost of an entry's place in the log: its line with the index, and its leaf in the tree. Nearly all of
// it is SHA-256, which sha256-ns/op measures alone: of the leaf, and of one node above.
func BenchmarkLink(b *testing.B) {
	l := newBenchLog(b)
	var text []byte
	b.ReportAllocs()
	for b.Loop() {
		text = record.AppendPlace(text[:0], []byte(entry), 0, l.Size())
		l.Add(text)
	}
	start := time.Now()
	for range b.N {
		sha256.Sum256(text)
		sha256.Sum256(text[:65])
	}
	b.ReportMetric(float64(time.Since(start).Nanoseconds())/float64(b.N), "sha256-ns/op")
}

// BenchmarkCheckpoint is the cost of a checkpoint of new entries. The writer of the log waits for the disk besides:
// kept-ns/op is the checkpoint with the two files in data_dir, which are synced.
func BenchmarkCheckpoint(b *testing.B) {
	l := newBenchLog(b)
	for range 1000 {
		l.Add([]byte(entry))
	}
	for b.Loop() {
		if _, err := l.sign(); err != nil {
			b.Fatal(err)
		}
	}
	const kept = 20
	start := time.Now()
	for range kept {
		l.Add([]byte(entry))
		if _, err := l.Checkpoint(0, false); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(time.Since(start).Nanoseconds())/kept, "kept-ns/op")
}

// BenchmarkVerify verifies a log with a checkpoint behind each 1,000 entries.
func BenchmarkVerify(b *testing.B) {
	l := newBenchLog(b)
	var text []byte
	for range 100 {
		line, err := l.Checkpoint(0, false)
		if err != nil {
			b.Fatal(err)
		}
		text = append(text, line...)
		for range 1000 {
			begin := len(text)
			text = record.AppendPlace(text, []byte(entry), 0, l.Size())
			l.Add(text[begin:])
		}
	}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		v := NewVerifier(VerifyOptions{Key: testKey(b), Place: record.ReadPlace})
		for line := range bytes.Lines(text) {
			v.Line("audit.jsonl", Text{Number: 1, Text: bytes.TrimSuffix(line, []byte("\n"))})
		}
		if v.Faulty > 0 || v.Size() != l.Size() {
			b.Fatal(v.Faults, v.Size())
		}
	}
}
