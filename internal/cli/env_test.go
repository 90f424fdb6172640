package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
)

// TestAdviseDownload: a user that may not read the CA's files learns where to download it.
func TestAdviseDownload(t *testing.T) {
	forbidden, damaged := fmt.Errorf("ca-key.pem: %w", fs.ErrPermission), errors.New("ca.pem: damaged")
	if err := adviseDownload(forbidden, "http://gate:9309"); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "http://gate:9309/ca.pem") {
		t.Error(err)
	}
	if err := adviseDownload(damaged, "http://gate:9309"); err != damaged {
		t.Error(err)
	}
	if err := adviseDownload(nil, "http://gate:9309"); err != nil {
		t.Error(err)
	}
}
