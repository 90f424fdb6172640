package fleet

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"strings"
)

// A stateLog logs that the store is away or back, once for each change.
type stateLog struct {
	log    *slog.Logger
	logged map[string]bool // the advice that was logged since the store is away
}

func (l *stateLog) up() {
	l.logged = nil
	l.log.Info("connected to the fleet's store")
}

// away logs why the store is away. While it is, it logs another reason only if that needs
// something else to be done.
func (l *stateLog) away(err error) {
	text := advice(err)
	if l.logged[text] || l.logged != nil && text == unreachable {
		return
	}
	if l.logged == nil {
		l.logged = map[string]bool{}
	}
	l.logged[text] = true
	l.log.Warn("the fleet's store is away: this gate goes on alone", "error", err, "advice", text)
}

const unreachable = "check that the store at fleet.address runs and can be reached"

// advices are what to do about the errors of the store, by their first word.
var advices = map[string]string{
	"NOAUTH":      "give USER:PASSWORD in fleet.address",
	"WRONGPASS":   "check USER:PASSWORD in fleet.address",
	"NOPERM":      "give the store's user the permissions that docs/fleet.md lists",
	"READONLY":    "the store is a replica: give the address of the primary, or of the Sentinels with ?sentinel=NAME",
	"OOM":         "raise maxmemory of the store",
	"MISCONF":     "the store cannot save its snapshots: see its log; it needs none (save \"\")",
	"LOADING":     "wait until the store has loaded its data",
	"MASTERDOWN":  "the store is a replica without its primary: see its log",
	"CLUSTERDOWN": "the Cluster has lost nodes: see CLUSTER INFO",
	"MOVED":       "the store is a node of a Cluster: its user needs +cluster|slots, +cluster|shards and +asking too",
	"NOREPLICAS":  "the store has too few replicas: see min-replicas-to-write",
}

// advice returns what to do about an error.
func advice(err error) string {
	if _, bad := errors.AsType[*tls.CertificateVerificationError](err); bad {
		return "check fleet.ca_file, and that the store's certificate is for the host in fleet.address"
	}
	if _, plain := errors.AsType[tls.RecordHeaderError](err); plain {
		return "the store does not use TLS: begin fleet.address with redis://"
	}
	for word := range strings.FieldsSeq(err.Error()) {
		if text, ok := advices[word]; ok {
			return text
		}
	}
	return unreachable
}
