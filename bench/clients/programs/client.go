// Go's net/http, with its defaults (plain) or its settings (set): a request a line in, its response a line out
// (line-exchange.ts has the form).
package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		answer, err := send(strings.Split(strings.TrimSuffix(line, "\n"), "\t"), os.Args[1])
		if err != nil {
			answer = "error\t" + strings.Join(strings.Fields(err.Error()), " ")
		}
		fmt.Println(answer)
	}
}

func send(parts []string, mode string) (string, error) {
	content, err := base64.StdEncoding.DecodeString(parts[2])
	if err != nil {
		return "", err
	}
	request, err := http.NewRequest(parts[0], parts[1], bytes.NewReader(content))
	if err != nil {
		return "", err
	}
	for _, field := range parts[3:] {
		name, value, _ := strings.Cut(field, ": ")
		request.Header.Set(name, value)
	}
	if mode == "set" {
		// Repeats any method on a kept connection that closes, and is sent itself.
		request.Header.Set("Idempotency-Key", `"clients"`)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := read(answer.Body, request.Header.Get("Accept") == "text/event-stream")
	if err != nil {
		return "", err
	}
	out := []string{fmt.Sprint(answer.StatusCode), base64.StdEncoding.EncodeToString(body)}
	for name, values := range answer.Header {
		out = append(out, name+": "+strings.Join(values, ", "))
	}
	return strings.Join(out, "\t"), nil
}

// The content, or that of an event stream as far as its first event.
func read(from io.Reader, isStream bool) ([]byte, error) {
	if !isStream {
		return io.ReadAll(from)
	}
	var body []byte
	chunk := make([]byte, 4096)
	for !bytes.Contains(body, []byte("\ndata:")) {
		count, err := from.Read(chunk)
		if err != nil {
			return body, err
		}
		body = append(body, chunk[:count]...)
	}
	return body, nil
}
