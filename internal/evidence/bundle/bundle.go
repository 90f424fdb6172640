// Package bundle makes and checks bundles: a selection of the entries of audit logs in a zip file, with all
// that a stranger needs to check them.
//
// [Collector] takes the lines of logs and [Collector.Write] makes the bundle. [Check] checks one. Each entry
// has the proof that it is in the tree of its log (RFC 6962, 2.1.1), and a checkpoint has the signed root of
// that tree.
package bundle

// Where to change what.
//
//	what is in a bundle      write.go; its bounds: below
//	how a bundle is checked  check.go, check_entries.go
//	what people read of it   report.html and readme.txt

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"robotsgate/policy/snapshot"
)

// The members of a bundle, besides those that memberName matches.
const (
	readmeName  = "README.txt"
	reportName  = "report.html"
	recordsName = "records.jsonl"
	proofsName  = "proofs.jsonl"
	answersName = "answers.jsonl"
)

// memberName matches the members with names of their own.
var memberName = regexp.MustCompile(`^(checkpoints/[1-9][0-9]{0,5}\.txt|(robots|configurations)/[0-9a-f]{64})$`)

// Bounds of a bundle. Bytes are those of the contents, without compression.
const (
	maxMember        = 256 << 20 // bytes
	maxTotal         = 2 << 30   // bytes of all members
	maxMembers       = 200_000
	maxEntries       = 1 << 20
	maxAnswers       = 64 << 20  // bytes, since all are in memory
	maxReadme        = 1 << 20   // bytes
	maxBody          = 16 << 20  // bytes of a robots.txt or tdmrep.json
	maxConfiguration = 512 << 10 // bytes: YAML takes 200 times as much memory
	maxLogs          = 100_000
	maxCheckpoint    = 1e6     // bytes
	maxTree          = 1 << 48 // entries of a log
)

// limitOf returns the bound of a member's contents, in bytes.
func limitOf(name string) int64 {
	switch name {
	case answersName:
		return maxAnswers
	case readmeName:
		return maxReadme
	}
	switch folder, _, _ := strings.Cut(name, "/"); folder + "/" {
	case configurationsDir:
		return maxConfiguration
	case robotsDir:
		return maxBody
	case checkpointsDir:
		return maxCheckpoint
	}
	return maxMember
}

const (
	checkpointsDir    = "checkpoints/"
	robotsDir         = "robots/"
	configurationsDir = "configurations/"
)

// ErrTooLarge says that a selection does not fit into a bundle.
var ErrTooLarge = errors.New("the selection is too large for one bundle: make several, such as one for each month, with --since and --until")

func tooLarge(format string, args ...any) error {
	return fmt.Errorf("%w (%s)", ErrTooLarge, fmt.Sprintf(format, args...))
}

// A proof is a line of proofs.jsonl.
type proof struct {
	Index int64       `json:"index"`
	Log   string      `json:"log"`
	Proof []tlog.Hash `json:"proof"`
}

// appendTo appends the line, as encoding/json would, which takes ten times as long.
func (p *proof) appendTo(b []byte) []byte {
	b = strconv.AppendInt(append(b, `{"index":`...), p.Index, 10)
	log, _ := json.Marshal(p.Log) // every string can be encoded
	b = append(append(append(b, `,"log":`...), log...), `,"proof":[`...)
	for i, h := range p.Proof {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(base64.StdEncoding.AppendEncode(append(b, '"'), h[:]), '"')
	}
	return append(b, "]}\n"...)
}

// An answer is a line of answers.jsonl: an origin's answer over some time.
type answer struct {
	URL     string    `json:"url"`
	Time    time.Time `json:"time"`             // when it was fetched first
	Fetched time.Time `json:"fetched"`          // when it was fetched last
	Until   time.Time `json:"until,omitzero"`   // when another took its place
	Status  int       `json:"status"`           // 0: there was no answer
	SHA256  string    `json:"sha256,omitempty"` // of the file
	Asker   string    `json:"asker,omitempty"`  // which it bound
	Looped  bool      `json:"looped,omitzero"`  // its redirects had no end
}

// answerOf returns the line of an answer to a request for a URL.
func answerOf(url string, a *snapshot.Answer) answer {
	s := a.Snapshot
	return answer{
		URL: url, Time: a.From.UTC(), Fetched: s.Fetched.UTC(), Until: a.To.UTC(), Status: s.Status, SHA256: s.SHA256,
		Asker: a.Asker, Looped: s.Looped,
	}
}

// stored is the inverse of answerOf.
func (a *answer) stored() snapshot.Answer {
	return snapshot.Answer{
		Asker: a.Asker, From: a.Time, To: a.Until,
		Snapshot: &snapshot.Snapshot{Status: a.Status, SHA256: a.SHA256, Fetched: a.Fetched, Looped: a.Looped},
	}
}

// The files of which an origin's answers are kept.
const (
	robotsPath = "/robots.txt"
	tdmrepPath = "/.well-known/tdmrep.json"
)
