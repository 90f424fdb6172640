package main

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// A content is what the last stage of the Dockerfile puts into the image.
type content struct {
	config      v1.Config
	directories []entry
	files       map[string]string // by path in the image: that in the source, and "" for the binary
}

// An entry is a file or a directory of the image.
type entry struct {
	name     string // without a slash at its beginning; that of a directory ends with one
	mode     int64
	uid, gid int
	content  []byte
}

// readDockerfile reads the last stage. Of RUN it reads only `install -d`, and it leaves out HEALTHCHECK, since the image
// is made without a shell and its programs. An instruction that it does not know is an error.
func readDockerfile(text string) (c content, err error) {
	text = regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(text, "")
	text = strings.ReplaceAll(text, "\\\n", " ")
	text = text[strings.LastIndex(text, "\nFROM ")+1:]
	c.files, c.config.Labels = map[string]string{}, map[string]string{}
	c.config.Env = []string{"PATH=/usr/local/bin"}
	c.config.WorkingDir = "/"
	for line := range strings.Lines(text) {
		name, arg, _ := strings.Cut(strings.TrimSpace(line), " ")
		arg = strings.TrimSpace(arg)
		words := strings.Fields(arg)
		switch name {
		case "", "FROM", "HEALTHCHECK":
		case "RUN":
			c.directories = append(c.directories, installed(arg)...)
		case "COPY":
			if len(words) == 3 && words[0] == "--from=build" {
				c.files[words[2]] = ""
			} else if len(words) == 2 && path.IsAbs(words[1]) {
				c.files[words[1]] = words[0]
			} else {
				return c, fmt.Errorf("the Dockerfile has COPY %s, which is not understood", arg)
			}
		case "USER":
			c.config.User = arg
		case "VOLUME":
			c.config.Volumes = map[string]struct{}{arg: {}}
		case "EXPOSE":
			c.config.ExposedPorts = map[string]struct{}{}
			for _, port := range words {
				c.config.ExposedPorts[port+"/tcp"] = struct{}{}
			}
		case "LABEL":
			m := regexp.MustCompile(`^([\w.]+)=(?:"([^"]*)"|([^" ]+))$`).FindStringSubmatch(arg)
			if m == nil {
				return c, fmt.Errorf("the Dockerfile has LABEL %s, which is not understood", arg)
			}
			c.config.Labels[m[1]] = m[2] + m[3]
		case "ENTRYPOINT":
			err = json.Unmarshal([]byte(arg), &c.config.Entrypoint)
		case "CMD":
			err = json.Unmarshal([]byte(arg), &c.config.Cmd)
		default:
			return c, fmt.Errorf("the Dockerfile has %s, which is not understood", name)
		}
		if err != nil {
			return c, fmt.Errorf("%s of the Dockerfile: %w", name, err)
		}
	}
	return c, nil
}

// installed returns the directories that a RUN makes with an owner and a mode.
func installed(run string) (all []entry) {
	for _, m := range regexp.MustCompile(`install -d -o (\d+) -g (\d+) -m (\d+) /(\S+)`).FindAllStringSubmatch(run, -1) {
		uid, _ := strconv.Atoi(m[1])
		gid, _ := strconv.Atoi(m[2])
		mode, _ := strconv.ParseInt(m[3], 8, 32)
		all = append(all, entry{name: m[4] + "/", mode: mode, uid: uid, gid: gid})
	}
	return all
}
