//go:build linux

// Command member is what the members of the conformance suite run. Its arguments are steps that say how it behaves.
//
//	print:<text>       writes a line
//	environment:<name> writes the value of a variable
//	file:<path>        writes the permissions of a file and its content, quoted
//	config             writes the content of its run's config file
//	results:<text>     adds a line to the file "lines" in its results folder, which it creates if necessary
//	get:<url>          writes the response
//	resolve:<name>     writes what the host of the address in a variable resolves to, once it does
//	child              starts a copy of itself in a new session, which ignores the stop signal and waits forever
//	ignore             ignores the stop signal from here on
//	once:<file>        if the file does not exist, creates it and fails with exit code 137
//	until:<file>       waits until the file exists
//	hold:<file>        until it is stopped, holds as many MiB of memory as the file says; none if there is no file
//	card:<file>        takes GPU memory: adds <MiB> of <all> to the file, as <file>,<MiB>,<all>; fails as CUDA does if
//	                   other running members have taken too much
//	share:<folder>     does work that takes <seconds> alone, as <folder>,<seconds>,<of one>,<of two>,…: members that share
//	                   the folder are together faster than one alone by the factor for their number
//	burn:<folder>      until it is stopped, keeps as many processors busy as the file "load" of the folder says, divided
//	                   equally among the members that share the folder; none if there is no file
//	work:<list>        until it is stopped, works off a Redis list, as <address>/<key>: finished items are added to the list
//	                   <key>-done
//	swallow:<port>     receives everything that is sent to the port, until it is stopped
//	send:<address>     sends 64 KiB to the address ten times a second, until it is stopped
//	wait               waits until it is stopped, and exits with 0
//	exit:<code>        exits
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// look is how often a member polls a file that it waits for.
	look = 20 * time.Millisecond
	// exitInterrupted is the exit code that a shell reports for SIGTERM.
	exitInterrupted = 128 + int(syscall.SIGTERM)
)

func main() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	for _, step := range os.Args[1:] {
		verb, operand, _ := strings.Cut(step, ":")
		switch verb {
		case "print":
			fmt.Fprintln(os.Stdout, operand)
		case "environment":
			fmt.Fprintln(os.Stdout, os.Getenv(operand))
		case "file":
			info, errInfo := os.Stat(operand)
			content, err := os.ReadFile(operand)
			if err := errors.Join(errInfo, err); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			fmt.Fprintf(os.Stdout, "%s %o %q\n", operand, info.Mode().Perm(), content)
		case "config":
			content, err := os.ReadFile(os.Getenv("TRAINYARD_CONFIG"))
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			fmt.Fprintf(os.Stdout, "%s\n", content)
		case "results":
			if err := leave(os.Getenv("TRAINYARD_RESULTS"), operand); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		case "get":
			if err := get(operand); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		case "resolve":
			if err := resolve(os.Getenv(operand), stop); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		case "child":
			child := exec.Command(os.Args[0], "ignore", "wait")
			child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if err := child.Start(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			fmt.Fprintln(os.Stdout, "child", child.Process.Pid)
		case "ignore":
			signal.Ignore(syscall.SIGTERM)
			stop = make(chan os.Signal)
		case "once":
			if _, err := os.Stat(operand); err != nil {
				if err := os.WriteFile(operand, nil, 0o600); err != nil {
					fmt.Fprintln(os.Stderr, err)
				}
				os.Exit(137)
			}
		case "until":
			for _, err := os.Stat(operand); err != nil; _, err = os.Stat(operand) {
				select {
				case <-time.After(look):
				case <-stop:
					os.Exit(exitInterrupted)
				}
			}
		case "hold":
			if err := hold(operand, stop); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		case "card":
			if err := takeCard(operand); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		case "share":
			if err := share(operand, stop); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		case "burn":
			if err := burn(operand, stop); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		case "work":
			if err := workOff(operand, stop); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		case "swallow":
			if err := swallow(operand, stop); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		case "send":
			send(operand, stop)
			os.Exit(0)
		case "wait":
			<-stop
			fmt.Fprintln(os.Stdout, "told to stop")
			os.Exit(0)
		case "exit":
			code, err := strconv.Atoi(operand)
			if err != nil {
				code = 1
			}
			os.Exit(code)
		default:
			fmt.Fprintf(os.Stderr, "unknown step %q\n", step)
			os.Exit(2)
		}
	}
}

// leave appends a line to the file "lines" in a folder.
func leave(folder, line string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(folder, "lines"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(file, line)
	return errors.Join(err, file.Close())
}

// hold keeps as much memory as the file says until it receives a stop signal. Memory is a load that doesn't depend on
// what else the machine does.
func hold(file string, stop <-chan os.Signal) error {
	var held []byte
	for {
		text, _ := os.ReadFile(file) // without a file, nothing is held
		mib, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		if bytes := mib << 20; bytes != len(held) {
			var err error
			if held, err = exchange(held, bytes); err != nil {
				return err
			}
		}
		select {
		case <-stop:
			return nil
		case <-time.After(look):
		}
	}
}

// exchange frees held, and returns the requested memory: resident, and not managed by the garbage collector.
func exchange(held []byte, bytes int) ([]byte, error) {
	if held != nil {
		if err := syscall.Munmap(held); err != nil {
			return nil, err
		}
	}
	if bytes <= 0 {
		return nil, nil
	}
	return syscall.Mmap(-1, 0, bytes, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_POPULATE)
}
