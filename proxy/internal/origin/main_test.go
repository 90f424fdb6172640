package origin_test

import (
	"testing"

	"robotsgate/proxy/internal/proxytest"
)

func TestMain(m *testing.M) { proxytest.Main(m) }
