// Command typecheck checks that all packages of this module, and their tests, compile for other systems: typecheck
// darwin/arm64 windows/amd64. It only type-checks, so it takes seconds, whereas go vet would compile everything again
// for each system.
package main

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"
)

// what is everything that type checking needs.
const what = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
	packages.NeedDeps |
	packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedTypesSizes

func main() {
	failed := 0
	for _, target := range os.Args[1:] {
		errors, err := check(target)
		if err != nil {
			fmt.Fprintf(os.Stderr, "typecheck for %s: %v\n", target, err)
			os.Exit(2)
		}
		if errors > 0 {
			fmt.Fprintf(os.Stderr, "%d errors for %s\n", errors, target)
		}
		failed += errors
	}
	if failed > 0 {
		os.Exit(1)
	}
}

// check prints the errors for a system and architecture, such as linux/amd64, and returns their number.
func check(target string) (errors int, err error) {
	system, architecture, _ := strings.Cut(target, "/")
	loaded, err := packages.Load(&packages.Config{
		Mode: what, Dir: "../..", Tests: true,
		Env: append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+architecture),
	}, "./...")
	if err != nil {
		return 0, err
	}
	return packages.PrintErrors(loaded), nil
}
