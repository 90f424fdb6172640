// Package wire tests the bytes on both sides of a whole proxy: what clients and origins may send, and what the other side
// receives. The tables of rows are here and in testdata.
package wire

import (
	"testing"

	"robotsgate/proxy/internal/proxytest"
)

func TestMain(m *testing.M) { proxytest.Main(m) }
