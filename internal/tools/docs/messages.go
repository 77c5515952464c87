package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// troubleshooting is the guide whose headings quote messages. An ellipsis stands for what varies.
const troubleshooting = "docs/guides/troubleshooting.md"

// composed are quotations that are not literals of this code: those of other programs, and those put together from
// parts.
var composed = []string{
	"Inconsistent dependency lock file", "Provider development overrides are in effect", // Terraform's
	"Provider produced inconsistent final plan", // too
	"no suitable node",                          // Docker's
	"exit code 137 (signal 9)", "hook before_removal is running for change", "there is no socket", "this is the Swarm",
	", not the Swarm",
}

var quotation = regexp.MustCompile("`([^`]+)`")

// staleMessages reports quotations in headings of the troubleshooting guide that no string of the code contains.
func staleMessages(root string) (wrong []string, err error) {
	guide, err := os.ReadFile(path.Join(root, troubleshooting))
	if err != nil {
		return nil, err
	}
	texts, err := literals(root)
	if err != nil {
		return nil, err
	}
	for line := range strings.SplitSeq(string(guide), "\n") {
		if !strings.HasPrefix(line, "### ") {
			continue
		}
		for _, quoted := range quotation.FindAllStringSubmatch(line, -1) {
			for part := range strings.SplitSeq(quoted[1], "…") {
				if part = strings.TrimSpace(part); !slices.Contains(composed, part) && !strings.Contains(texts, part) {
					wrong = append(wrong,
						fmt.Sprintf("%s: %s: no message says %q", troubleshooting, strings.TrimSpace(line), part))
				}
			}
		}
	}
	return wrong, nil
}

// literals returns the constant strings of the code without its tests, separated by NUL.
func literals(root string) (string, error) {
	files, err := tracked(root, "*.go")
	if err != nil {
		return "", err
	}
	var texts strings.Builder
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "internal/acctest/") ||
			strings.HasPrefix(file, "internal/tools/") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path.Join(root, file), nil, parser.SkipObjectResolution)
		if err != nil {
			return "", err
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			expression, is := node.(ast.Expr)
			if !is {
				return true
			}
			text, constant := fold(expression)
			if constant {
				texts.WriteString(text + "\x00")
			}
			return !constant
		})
	}
	return texts.String(), nil
}

// fold returns the value of a string literal, or of several joined by +.
func fold(e ast.Expr) (text string, constant bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		left, isLeft := fold(e.X)
		right, isRight := fold(e.Y)
		return left + right, e.Op == token.ADD && isLeft && isRight
	}
	return "", false
}
