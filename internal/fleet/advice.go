package fleet

import (
	"crypto/tls"
	"errors"
	"strings"
)

// advices are what to do about the errors of the store, by their first word.
var advices = map[string]string{
	"NOAUTH":      "give USER:PASSWORD in fleet.address",
	"WRONGPASS":   "check USER:PASSWORD in fleet.address",
	"NOPERM":      "give the store's user the permissions that docs/fleet.md lists",
	"READONLY":    "the store is a replica: give the address of the primary, or of the Sentinels with ?sentinel=NAME",
	"OOM":         "raise maxmemory of the store",
	"MISCONF":     "the store cannot save its snapshots: see its log; it needs none (save \"\")",
	"CLUSTERDOWN": "the Cluster has lost nodes: see CLUSTER INFO",
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
	return "check that the store at fleet.address runs and can be reached"
}
