// Command peer is what containers run in tests of the test bed. With an argument, it does one thing:
//
//	echo                 copies its input to its output
//	show FILE            writes a file's content
//	take MIB             takes that much memory
//	open MAJOR MINOR     creates a character device with these numbers, and opens it
//
// Without arguments, it answers requests on a port, one per line:
//
//	name         the node it runs on, from the environment
//	peers NAME   the names of all peers that NAME resolves to, queried over the network
//	engine       what Docker's API says about the Engine behind /var/run/docker.sock
package main

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
)

const port = ":7000"

func main() {
	fmt.Println("peer starts")
	if len(os.Args) > 1 {
		if err := do(os.Args[1], os.Args[2:]); err != nil {
			log.Fatal(err)
		}
		return
	}
	listener, err := net.Listen("tcp", port)
	if err != nil {
		log.Fatal(err)
	}
	for {
		connection, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go serve(connection)
	}
}

func do(what string, with []string) error {
	var numbers []int
	for _, text := range with {
		number, _ := strconv.Atoi(text) // 0 for non-numbers
		numbers = append(numbers, number)
	}
	switch what {
	case "echo":
		_, err := io.Copy(os.Stdout, os.Stdin)
		return err
	case "show":
		content, err := os.ReadFile(with[0])
		fmt.Print(string(content))
		return err
	case "take":
		taken := make([]byte, numbers[0]<<20)
		for i := range taken {
			taken[i] = 1
		}
		fmt.Println("took", len(taken))
		return nil
	case "open":
		const device = "/device"
		if err := syscall.Mknod(device, syscall.S_IFCHR|0o600, numbers[0]<<8|numbers[1]); err != nil {
			return err
		}
		file, err := os.Open(device)
		if err != nil {
			return err
		}
		return file.Close()
	}
	return fmt.Errorf("unknown argument %q", what)
}

func serve(connection net.Conn) {
	defer connection.Close()
	question, err := bufio.NewReader(connection).ReadString('\n')
	if err != nil {
		return
	}
	answer, err := answer(strings.Fields(question))
	if err != nil {
		answer = "error: " + err.Error()
	}
	fmt.Fprintln(connection, answer)
}

func answer(question []string) (string, error) {
	switch question[0] {
	case "name":
		return os.Getenv("NODE"), nil
	case "peers":
		addresses, err := net.LookupHost(question[1])
		if err != nil {
			return "", err
		}
		var names []string
		for _, address := range addresses {
			name, err := ask("tcp", address+port, "name\n")
			if err != nil {
				return "", err
			}
			names = append(names, name)
		}
		return strings.Join(names, " "), nil
	case "engine":
		response, err := ask("unix", "/var/run/docker.sock", "GET /info HTTP/1.0\r\n\r\n")
		_, body, _ := strings.Cut(response, "\r\n\r\n")
		return body, err
	}
	return "", fmt.Errorf("unknown question %q", question)
}

func ask(network, address, question string) (string, error) {
	connection, err := net.Dial(network, address)
	if err != nil {
		return "", err
	}
	defer connection.Close()
	if _, err := io.WriteString(connection, question); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(connection)
	return strings.TrimSpace(string(answer)), err
}
