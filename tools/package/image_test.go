package main

import (
	"bytes"
	"debug/elf"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// TestReadDockerfile compares what is read of the Dockerfile with what it says, and tries one that is not understood.
// TestImage of internal/e2e checks the Dockerfile itself.
func TestReadDockerfile(t *testing.T) {
	text := read(t, "../..", "Dockerfile")
	c, err := readDockerfile(text)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintln(c.config.User, c.config.Entrypoint, c.config.Cmd, c.config.Volumes, c.config.ExposedPorts, c.directories, c.files)
	const want = "10001:10001 [/usr/local/bin/robotsgate] [serve -c /etc/robotsgate/config.yaml] map[/data:{}] map[9309/tcp:{} 9310/tcp:{}] " +
		"[{trust/ 493 10001 10001 []} {data/ 448 10001 10001 []}] map[/etc/robotsgate/config.yaml:deploy/image/config.yaml /usr/local/bin/robotsgate:]\n"
	if got != want {
		t.Errorf("got  %swant %s", got, want)
	}
	if l := c.config.Labels; l["org.opencontainers.image.title"] != "robotsgate" || !strings.HasPrefix(l["org.opencontainers.image.description"], "a forward") {
		t.Errorf("labels: %q", c.config.Labels)
	}
	for _, line := range []string{"STOPSIGNAL SIGINT", "COPY a b c", "LABEL a=1 b=2", "CMD serve"} {
		if _, err := readDockerfile(text + line + "\n"); err == nil {
			t.Errorf("%s is accepted", line)
		}
	}
}

// testImage reads the OCI archives of a whole build and of one for this machine only, and runs the image.
func testImage(t *testing.T, built, single map[string][]byte) {
	images := readImages(t, find(t, built, "robotsgate_0.1.0_image.tar"))
	if len(images) != 2 {
		t.Fatalf("got %d images, want those for linux/amd64 and linux/arm64", len(images))
	}
	machines := map[string]elf.Machine{"linux/amd64": elf.EM_X86_64, "linux/arm64": elf.EM_AARCH64}
	for platform, image := range images {
		root := unpack(t, image)
		binary, err := elf.Open(filepath.Join(root, "usr/local/bin/robotsgate"))
		if err != nil {
			t.Fatal(err)
		}
		if binary.Machine != machines[platform] {
			t.Errorf("the binary for %s is for %v", platform, binary.Machine)
		}
		binary.Close()
		if platform == "linux/"+runtime.GOARCH {
			runImage(t, image, root)
		}
	}
	here := readImages(t, find(t, single, "robotsgate_0.2.0_image_"+runtime.GOARCH+".tar"))
	if len(here) != 1 || here["linux/"+runtime.GOARCH] == nil {
		t.Errorf("built for this machine: got images %v", here)
	}
}

// readImages returns the images of an OCI archive by platform, after a check of every hash in it.
func readImages(t *testing.T, archive []byte) map[string]v1.Image {
	t.Helper()
	dir := t.TempDir()
	tar := exec.CommandContext(t.Context(), "tar", "-x", "-C", dir)
	tar.Stdin = bytes.NewReader(archive)
	if out, err := tar.CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, out)
	}
	outer, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	list, err := outer.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	// With more than one entry podman and skopeo would ask which one is meant.
	if len(list.Manifests) != 1 || !strings.HasPrefix(list.Manifests[0].Annotations["io.containerd.image.name"], "docker.io/library/robotsgate:0.") {
		t.Fatalf("the index has %v", list.Manifests)
	}
	index, err := outer.ImageIndex(list.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	images := map[string]v1.Image{}
	for _, m := range manifest.Manifests {
		if images[m.Platform.String()], err = index.Image(m.Digest); err != nil {
			t.Fatal(err)
		}
	}
	return images
}

// unpack returns a directory with the files of an image, and their owners.
func unpack(t *testing.T, image v1.Image) (root string) {
	t.Helper()
	root = t.TempDir()
	files := mutate.Extract(image)
	defer files.Close()
	tar := exec.CommandContext(t.Context(), "tar", "-x", "--numeric-owner", "-p", "-C", root)
	tar.Stdin = files
	if out, err := tar.CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, out)
	}
	return root
}

// runImage starts the image in root as its configuration says, and sends requests through the gate.
func runImage(t *testing.T, image v1.Image, root string) {
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c := file.Config
	if got := c.Labels["org.opencontainers.image.version"]; got != "0.1.0" {
		t.Errorf("the label of the version is %q", got)
	}
	var uid, gid uint32
	if _, err := fmt.Sscanf(c.User, "%d:%d", &uid, &gid); err != nil || uid == 0 || gid == 0 {
		t.Fatalf("the user is %s", c.User)
	}
	if n := bytes.Count([]byte(read(t, root, "etc/ssl/certs/ca-certificates.crt")), []byte("-----BEGIN CERTIFICATE-----")); n < 100 {
		t.Errorf("%d public root CAs", n)
	} else if block, _ := pem.Decode([]byte(read(t, root, "etc/ssl/certs/ca-certificates.crt"))); block == nil {
		t.Error("the file of the public root CAs cannot be read")
	}
	for _, name := range []string{"LICENSE", "LICENSES-OF-MODULES.txt"} {
		if read(t, root, "usr/share/doc/robotsgate/"+name) == "" {
			t.Errorf("%s is empty", name)
		}
	}
	for volume := range c.Volumes {
		info, err := os.Stat(filepath.Join(root, volume))
		if err != nil {
			t.Fatal(err)
		}
		owner := info.Sys().(*syscall.Stat_t)
		if info.Mode().Perm() != 0o700 || owner.Uid != uid || owner.Gid != gid {
			t.Errorf("%s: %v of %d:%d", volume, info.Mode(), owner.Uid, owner.Gid)
		}
	}
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	configuration := c.Cmd[len(c.Cmd)-1]
	validate := exec.CommandContext(t.Context(), c.Entrypoint[0], "validate", configuration)
	validate.Dir, validate.Env = "/", c.Env
	validate.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: uid, Gid: gid}}
	if out, err := validate.CombinedOutput(); err != nil {
		t.Errorf("validate: %v\n%s", err, out)
	}
	edited := strings.Replace(read(t, root, configuration), "listen: 0.0.0.0:9309", "listen: 127.0.0.1:0", 1) +
		"admin: {listen: \"\"}\negress: {allow_private: [127.0.0.0/8]}\n"
	write(t, filepath.Join(root, configuration), []byte(edited))
	gate := start(t, root, slices.Concat(c.Entrypoint, c.Cmd), uid, gid)
	gate.tryRequests(t, newOrigin(t))
	gate.stop(t)
	if !exists(root, "data/ca-key.pem") || !exists(root, "data/bundle.pem") {
		t.Error("the gate has written nothing into its volume")
	}
	if roots := strings.Count(read(t, root, "data/bundle.pem"), "-----BEGIN CERTIFICATE-----"); roots < 100 {
		t.Errorf("the bundle for clients has %d certificates: the gate does not find the public root CAs", roots)
	}
}
