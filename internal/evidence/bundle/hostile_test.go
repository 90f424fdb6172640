package bundle

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"runtime"
	"strings"
	"testing"

	"robotsgate/internal/audit"
	"robotsgate/internal/gatetest"
	"robotsgate/policy/snapshot"
)

// A member is a file of a zip file.
type member struct {
	name, text string
	mode       fs.FileMode
}

func zipOf(t testing.TB, all ...member) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, m := range all {
		h := &zip.FileHeader{Name: m.name, Method: zip.Deflate}
		if m.mode != 0 {
			h.SetMode(m.mode)
		}
		w, err := z.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, m.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// bomb returns a bundle with members whose directory states a length for each.
func bomb(size int, names ...string) func(*testing.T) []byte {
	return func(t *testing.T) []byte {
		var out bytes.Buffer
		z := zip.NewWriter(&out)
		for _, name := range append(names, recordsName) {
			_, err := z.CreateRaw(&zip.FileHeader{Name: name, Method: zip.Deflate, UncompressedSize64: uint64(size)})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
}

// stating returns a bundle whose directory states another length for a member than it has.
func stating(t *testing.T, size uint64, text string) []byte {
	var packed, out bytes.Buffer
	f, _ := flate.NewWriter(&packed, flate.BestSpeed)
	_, err := io.WriteString(f, text)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(&out)
	w, err := z.CreateRaw(&zip.FileHeader{Name: recordsName, Method: zip.Deflate, CRC32: crc32.ChecksumIEEE([]byte(text)), CompressedSize64: uint64(packed.Len()), UncompressedSize64: size})
	if err == nil {
		_, err = w.Write(packed.Bytes())
	}
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestHostile: what is no bundle, or is made to harm, is an error, with little memory.
func TestHostile(t *testing.T) {
	const some = "{}\n"
	entries := member{recordsName, some, 0}
	for _, test := range []struct {
		name string
		make func(*testing.T) []byte
		want string
	}{
		{"nothing", func(*testing.T) []byte { return nil }, "zip: not a valid zip file"},
		{"text", func(*testing.T) []byte { return []byte("PK\x03\x04 and so on") }, "zip: not a valid zip file"},
		{"an empty zip file", func(t *testing.T) []byte { return zipOf(t) }, "there is no records.jsonl in it"},
		{"a path upwards", func(t *testing.T) []byte { return zipOf(t, entries, member{"../x", "", 0}) }, `it has a file "../x", which no bundle has`},
		{"a path upwards in a folder", func(t *testing.T) []byte { return zipOf(t, entries, member{"robots/../x", "", 0}) }, "which no bundle has"},
		{"an absolute path", func(t *testing.T) []byte { return zipOf(t, entries, member{"/etc/passwd", "", 0}) }, "which no bundle has"},
		{"a drive", func(t *testing.T) []byte { return zipOf(t, entries, member{`C:\x`, "", 0}) }, "which no bundle has"},
		{"a name that controls a terminal", func(t *testing.T) []byte { return zipOf(t, entries, member{"\x1b[2J", "", 0}) }, `it has a file "\x1b[2J"`},
		{"an unknown file", func(t *testing.T) []byte { return zipOf(t, entries, member{"more.txt", "", 0}) }, "which no bundle has"},
		{"a name that is no SHA-256", func(t *testing.T) []byte {
			return zipOf(t, entries, member{"robots/" + strings.Repeat("g", 64), "", 0})
		}, "which no bundle has"},
		{"a folder", func(t *testing.T) []byte { return zipOf(t, entries, member{"robots/", "", fs.ModeDir | 0o755}) }, "which no bundle has"},
		{"a file twice", func(t *testing.T) []byte { return zipOf(t, entries, entries) }, `it has the file "records.jsonl" twice`},
		{"a link", func(t *testing.T) []byte {
			return zipOf(t, entries, member{readmeName, "/etc/passwd", fs.ModeSymlink | 0o777})
		}, `"README.txt" is a link, or no file`},
		{"a device", func(t *testing.T) []byte { return zipOf(t, entries, member{readmeName, "", fs.ModeDevice | 0o666}) }, `"README.txt" is a link, or no file`},
		{"a large file", bomb(maxMember+1, reportName), `"report.html" has more than 262144 KiB`},
		{"a large robots.txt", bomb(maxBody+1, "robots/"+strings.Repeat("a", 64)), "has more than 16384 KiB"},
		{"a large configuration", bomb(maxConfiguration+1, "configurations/"+strings.Repeat("a", 64)), "has more than 512 KiB"},
		{"many large files", func(t *testing.T) []byte {
			var names []string
			for i := range maxTotal/maxBody + 1 {
				names = append(names, fmt.Sprintf("robots/%064x", i))
			}
			return bomb(maxBody, names...)(t)
		}, "its files have more than 2048 MiB together"},
		{"a bomb", func(t *testing.T) []byte { return stating(t, 3, strings.Repeat("{}\n", 10<<20)) }, "records.jsonl: zip: not a valid zip file"},
		{"an endless line", func(t *testing.T) []byte { return zipOf(t, member{recordsName, strings.Repeat("x", 3<<20), 0}) }, "records.jsonl: line 1 is too long"},
		{"an endless proof", func(t *testing.T) []byte { return zipOf(t, entries, member{proofsName, strings.Repeat("x", 3<<20), 0}) }, "proofs.jsonl: line 1 is too long"},
		{"an endless answer", func(t *testing.T) []byte {
			return zipOf(t, entries, member{answersName, strings.Repeat("x", 3<<20), 0})
		}, "answers.jsonl: line 1 is too long"},
		{"too many records", func(t *testing.T) []byte {
			return zipOf(t, member{recordsName, strings.Repeat("x\n", maxEntries+1), 0})
		}, "records.jsonl has more than 1048576 records"},
		{"too many answers", func(t *testing.T) []byte {
			return zipOf(t, entries, member{answersName, strings.Repeat("{}\n", maxAnswersOf+1), 0})
		}, "answers.jsonl: more than 262144 answers, or more than 10000 about one URL"},
		{"shorter than stated", func(t *testing.T) []byte { return stating(t, 200, some) }, "records.jsonl: unexpected EOF"},
		{"another checksum", func(t *testing.T) []byte {
			text := zipOf(t, entries)
			i := bytes.LastIndex(text, []byte("PK\x01\x02"))
			binary.LittleEndian.PutUint32(text[i+16:], 1)
			return text
		}, "checksum error"},
		{"an encrypted file", func(t *testing.T) []byte {
			text := zipOf(t, entries, member{readmeName, some, 0})
			i := bytes.LastIndex(text, []byte("PK\x01\x02"))
			binary.LittleEndian.PutUint16(text[i+8:], 1)
			return text
		}, `"README.txt" is encrypted`},
		{"a report that states another size", func(t *testing.T) []byte {
			text := zipOf(t, entries, member{reportName, strings.Repeat("x", 1<<20), 0})
			i := bytes.LastIndex(text, []byte("PK\x01\x02"))
			binary.LittleEndian.PutUint32(text[i+24:], 3)
			return text
		}, "report.html: zip: "},
		{"empty records", func(t *testing.T) []byte { return zipOf(t, member{recordsName, some + "\n", 0}) }, "records.jsonl: line 2 is empty"},
		{"empty proofs", func(t *testing.T) []byte { return zipOf(t, entries, member{proofsName, "\n\n", 0}) }, "proofs.jsonl: line 1 is empty"},
		{"a directory that is too long", func(t *testing.T) []byte {
			text := zipOf(t, entries)
			i := bytes.LastIndex(text, []byte("PK\x01\x02"))
			end := bytes.LastIndex(text, []byte("PK\x05\x06"))
			entry := text[i:end]
			n := maxDirectory/len(entry) + 1
			out := append(bytes.Clone(text[:i]), bytes.Repeat(entry, n)...)
			tail := bytes.Clone(text[end:])
			binary.LittleEndian.PutUint16(tail[8:], uint16(n))
			binary.LittleEndian.PutUint16(tail[10:], uint16(n))
			binary.LittleEndian.PutUint32(tail[12:], uint32(n*len(entry)))
			return append(out, tail...)
		}, "the directory of the zip file has more than 32 MiB"},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := test.make(t)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			_, err := Check(bytes.NewReader(text), int64(len(text)), CheckOptions{Parse: parse})
			runtime.ReadMemStats(&after)
			if _, ok := errors.AsType[NoBundleError](err); !ok || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if most := uint64(300 << 20); after.HeapSys > max(before.HeapSys, most) {
				t.Errorf("the heap has grown from %d to %d MiB", before.HeapSys>>20, after.HeapSys>>20)
			}
		})
	}
}

// TestTampered changes one thing of a bundle after another. Each is found.
func TestTampered(t *testing.T) {
	k := newKept(t, 2)
	seen := witness(t, "witness.example")
	w := k.logOf(t, 120, 2, seen)
	vkey := seen.Verifier().String()
	bundle, _ := k.bundle(t, w, &audit.Filter{Until: noon.Add(2 * 60e9)}, vkey)
	if c := check(t, bundle, CheckOptions{Keys: []string{w.signer.Key()}, Witnesses: []string{vkey}}); !c.OK() || c.Cosigned[0] != "witness.example" {
		t.Fatalf("untouched: %+v", c)
	}
	other := newLog(t, "other.example")
	names, contents := members(t, bundle)
	lines := func(name string) []string { return strings.SplitAfter(strings.TrimSuffix(contents[name], "\n"), "\n") }
	robots, configuration := memberIn(names, robotsDir), memberIn(names, configurationsDir)
	for _, test := range []struct {
		name   string
		change func(files map[string]string)
		kind   string
		proven int // entries less than all
	}{
		{"a record changed", func(f map[string]string) {
			f[recordsName] = strings.Replace(f[recordsName], `"decision":"allow"`, `"decision":"deny"`, 1)
		}, badProof, 1},
		{"an index changed", func(f map[string]string) {
			f[recordsName] = strings.Replace(f[recordsName], `"index":7}`, `"index":8}`, 1)
		}, badProof, 1},
		{"a record removed", func(f map[string]string) { f[recordsName] = strings.Join(lines(recordsName)[1:], "") }, badProof, 60},
		{"a proof removed", func(f map[string]string) { f[proofsName] = strings.Join(lines(proofsName)[:59], "") }, badProof, 1},
		{"a record and its proof twice", func(f map[string]string) {
			f[recordsName] += lines(recordsName)[0]
			f[proofsName] += lines(proofsName)[0]
		}, badProof, 0},
		{"a proof too many", func(f map[string]string) { f[proofsName] += lines(proofsName)[0] }, badProof, 0},
		{"a proof of another record", func(f map[string]string) {
			f[proofsName] = strings.Replace(f[proofsName], `"index":7,`, `"index":6,`, 1)
		}, badProof, 1},
		{"no proof", func(f map[string]string) { f[proofsName] = strings.Replace(f[proofsName], "{", "[", 1) }, badProof, 1},
		{"no proofs", func(f map[string]string) { delete(f, proofsName) }, badProof, 60},
		{"no records", func(f map[string]string) { f[recordsName], f[proofsName] = "", "" }, badEntry, 60},
		{"no checkpoint", func(f map[string]string) { delete(f, "checkpoints/1.txt") }, badCheckpoint, 60},
		{"another size", func(f map[string]string) {
			f["checkpoints/1.txt"] = strings.Replace(f["checkpoints/1.txt"], "\n120\n", "\n121\n", 1)
		}, badCheckpoint, 60},
		{"a huge size", func(f map[string]string) {
			f["checkpoints/1.txt"] = w.signed(t, 1<<62+1)
		}, badCheckpoint, 60},
		{"two checkpoints of one log", func(f map[string]string) { f["checkpoints/2.txt"] = f["checkpoints/1.txt"] }, badCheckpoint, 0},
		{"a checkpoint of another log", func(f map[string]string) { f["checkpoints/2.txt"] = other.signed(t, 3) }, badCheckpoint, 0},
		{"without the witness", func(f map[string]string) {
			f["checkpoints/1.txt"] = w.signed(t, w.tree.Size)
		}, badWitness, 0},
		{"a robots.txt changed", func(f map[string]string) { f[robots] += "\n" }, "snapshot_changed", 0},
		{"a robots.txt removed", func(f map[string]string) { delete(f, robots) }, "snapshot_gone", 0},
		{"a configuration changed", func(f map[string]string) { f[configuration] += "\n" }, "configuration_changed", 0},
		{"a configuration removed", func(f map[string]string) { delete(f, configuration) }, "configuration_gone", 0},
		{"an answer removed", func(f map[string]string) { f[answersName] = lines(answersName)[0] }, "not_in_the_origin's_history", 0},
		{"no answers", func(f map[string]string) { delete(f, answersName) }, "not_in_the_origin's_history", 0},
		{"an answer of another time", func(f map[string]string) {
			f[answersName] = strings.Replace(f[answersName], "2026-05-01T12:00:00Z", "2026-05-01T12:30:00Z", 1)
		}, "not_in_the_origin's_history", 0},
		{"no answer", func(f map[string]string) { f[answersName] += "x\n" }, badFile, 0},
		{"no README.txt", func(f map[string]string) { delete(f, readmeName) }, badFile, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := map[string]string{}
			var all []member
			maps.Copy(files, contents)
			test.change(files)
			for name, text := range files {
				all = append(all, member{name, text, 0})
			}
			c := check(t, zipOf(t, all...), CheckOptions{Keys: []string{w.signer.Key()}, Witnesses: []string{vkey}})
			var kinds strings.Builder
			for _, f := range c.Findings {
				kinds.WriteString(f.Kind + " ")
			}
			if c.OK() || !strings.Contains(" "+kinds.String(), " "+test.kind+" ") || c.Proven != 60-test.proven {
				t.Errorf("got %d of %d records proven and %q, want %d and %q\n%v", c.Proven, c.Entries, kinds.String(), 60-test.proven, test.kind, c.Findings)
			}
		})
	}
}

func memberIn(names []string, folder string) string {
	for _, name := range names {
		if strings.HasPrefix(name, folder) {
			return name
		}
	}
	return ""
}

// TestTooManyAnswers: no bundle is made that check refuses for the number of its answers.
func TestTooManyAnswers(t *testing.T) {
	answers := func(n int) []snapshot.Answer {
		all := make([]snapshot.Answer, n)
		for i := range all {
			all[i] = snapshot.Answer{From: noon, Snapshot: answered(noon)}
		}
		return all
	}
	most := answers(maxAnswersOf)
	for _, test := range []struct {
		name  string
		sites int
		of    func(site int) []snapshot.Answer
		ok    bool
	}{
		{"as many as are permitted about one URL", 1, func(int) []snapshot.Answer { return most }, true},
		{"one more", 1, func(int) []snapshot.Answer { return answers(maxAnswersOf + 1) }, false},
		{"too many in all", maxAnswerCount/maxAnswersOf + 1, func(int) []snapshot.Answer { return most }, false},
	} {
		if gatetest.RaceDetector && test.sites > 1 {
			continue // a quarter of a million answers, written by one goroutine
		}
		t.Run(test.name, func(t *testing.T) {
			k := newKept(t, test.sites)
			for i := range test.sites {
				k.history[origin(i)] = test.of(i)
			}
			w := k.logOf(t, test.sites, test.sites)
			keys := w.keys(t)
			c, logs := collect(t, &audit.Filter{}, keys, w.Bytes())
			var out bytes.Buffer
			_, err := c.Write(&out, options(k, logs, keys, "Many answers"))
			if !test.ok {
				if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "--since and --until") {
					t.Errorf("got the error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := check(t, out.Bytes(), CheckOptions{Keys: []string{w.signer.Key()}}); !got.OK() || got.Proven != test.sites {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// TestRepeatedMembers has entries that one reader takes for allowed and another for denied.
func TestRepeatedMembers(t *testing.T) {
	for text, want := range map[string]string{
		`{"time":"2026-05-01T12:00:00Z","decision":"deny","status":403}`:                                           "",
		`{"time":"2026-05-01T12:00:00Z","decision":"deny","decision":"allow"}`:                                     "DECISION",
		`{"time":"2026-05-01T12:00:00Z","status":200,"\u0053tatus":403}`:                                           "STATUS",
		`{"time":"2026-05-01T12:00:00Z","status":200,"ſtatus":403}`:                                                "STATUS",
		`{"time":"2026-05-01T12:00:00Z","x":{"line":1,"Line":2}}`:                                                  "LINE",
		`{"time":"2026-05-01T12:00:00Z","preferences":[{"purpose":"x"},{"purpose":"y","purpose":"z"}],"status":1}`: "PURPOSE",
	} {
		_, err := parseEntry([]byte(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), `"`+want+`" twice`)) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
