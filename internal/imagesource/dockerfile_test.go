package imagesource

import (
	"slices"
	"strings"
	"testing"
)

func TestBases(t *testing.T) {
	for name, test := range map[string]struct {
		dockerfile string
		args       map[string]string
		want       []string
	}{
		"one":             {"FROM python:3.12\nRUN true\n", nil, []string{"python:3.12"}},
		"no end of line":  {"FROM python:3.12", nil, []string{"python:3.12"}},
		"a mark of bytes": {"\ufeffFROM python:3.12", nil, []string{"python:3.12"}},
		"nothing":         {"FROM scratch\nFROM\n", nil, nil},
		"small letters, tabs": {
			"  from\t--platform=$BUILDPLATFORM  a.example.com/base:1\tas  Base\r\nfrom base\r\n", nil,
			[]string{"a.example.com/base:1"},
		},
		"several stages": {
			"FROM a.example.com/a AS one\nFROM b.example.com/b@sha256:0\nFROM one AS two\nCOPY --from=ONE /a /\nCOPY --chown=1 --from=0 /a /\nCOPY --from=c.example.com/c:1 /c /\n",
			nil,
			[]string{"a.example.com/a", "b.example.com/b@sha256:0", "c.example.com/c:1"},
		},
		"a stage called as its image": {"FROM python AS python\nFROM python\n", nil, []string{"python"}},
		"comments and long lines": {
			"# FROM not\nFROM \\\n  # FROM not either\n\n  a.example.com/a \\  \n  AS a\nRUN echo \\\nFROM not\n", nil,
			[]string{"a.example.com/a"},
		},
		"another escape": {
			"# syntax=docker/dockerfile:1\n# escape=`\nFROM `\n  a:1\nRUN dir C:\\\nFROM b:1\n", nil,
			[]string{"a:1", "b:1"},
		},
		"an escape too late": {"\n# escape=`\nFROM \\\n a:1\n", nil, []string{"a:1"}},
		"arguments": {
			"ARG REGISTRY=a.example.com NAME\nARG TAG=\"1\"\nARG IMAGE=$REGISTRY/${NAME:-base}:${TAG}\nFROM $IMAGE\n",
			nil, []string{"a.example.com/base:1"},
		},
		"arguments that are given": {
			"ARG REGISTRY=a.example.com\nFROM ${REGISTRY}/base:${TAG-1}\n",
			map[string]string{"REGISTRY": "b.example.com", "TAG": "2"}, []string{"b.example.com/base:1"},
		},
		"an argument of a stage": {"FROM a\nARG B=b.example.com/b\nFROM ${B:-c}\n", nil, []string{"a", "c"}},
		"alternatives": {
			"ARG EMPTY=\nARG FULL=x\nFROM a/${EMPTY:-1}\nFROM b/${EMPTY-1}y\nFROM c/${FULL:+2}\nFROM d${EMPTY:+/3}\nFROM e/${EMPTY+4}\nFROM f${NONE+/5}\n",
			nil,
			[]string{"a/1", "b/y", "c/2", "d", "e/4", "f"},
		},
		"what can't be resolved": {
			"ARG A=a.example.com/a\nFROM ${A%/*}/b\nFROM ${A/a/b}\nFROM ${}\nFROM $UNKNOWN\n", nil, nil,
		},
	} {
		if got := bases(test.dockerfile, test.args); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestBasesOfFolder(t *testing.T) {
	root := folder(t, map[string]string{"sub/Dockerfile": "ARG TAG\nFROM a:$TAG\n"})
	b := Build{Context: root, Dockerfile: "sub/Dockerfile", Args: map[string]string{"TAG": "1"}}
	if got, err := b.Bases(); err != nil || !slices.Equal(got, []string{"a:1"}) {
		t.Errorf("%q (%v)", got, err)
	}
	if _, err := build(root).Bases(); err == nil {
		t.Error("there are images without a Dockerfile")
	}
}

// Any Dockerfile is accepted, and an image is a word of it or of an argument.
func FuzzBases(f *testing.F) {
	for _, text := range []string{
		"ARG A=b\nFROM $A AS c", "# escape=`\nFROM a `\nb", "FROM ${A:-${B}}", "COPY --from=a b", "FROM a \\",
	} {
		f.Add(text, "value")
	}
	f.Fuzz(func(t *testing.T, dockerfile, value string) {
		for _, image := range bases(dockerfile, map[string]string{"A": value}) {
			if image == "" || strings.EqualFold(image, "scratch") {
				t.Errorf("%q is an image of %q", image, dockerfile)
			}
		}
	})
}
