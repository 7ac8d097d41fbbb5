// The server under test: one process per engine for the whole run, started when a test first asks for it.
package acceptance

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
)

const (
	namespace = "default"
	// A cold start on Cassandra creates a keyspace and its tables first, on a machine that may be compiling.
	readyTimeout = 120 * time.Second
	stopTimeout  = 30 * time.Second
	pollInterval = 50 * time.Millisecond
	// One test never needs this long on two idle cores; it is the bound for a busy machine.
	testTimeout  = 120 * time.Second
	logTailBytes = 8 << 10
)

// engine is a kind of store, and how a server on it is started.
type engine struct {
	name    string
	command func(folder string, port int) (*exec.Cmd, error)

	once    sync.Once
	server  *server
	failure error
}

type server struct {
	process *exec.Cmd
	ended   chan error
	address string
	log     string
}

// quiet drops what the SDK logs: it reports every attempt that fails, and here some are made to.
var quiet = sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))

var engines = []*engine{
	{name: "embedded", command: embedded},
	{name: "cassandra", command: cassandra},
}

func TestMain(m *testing.M) {
	status := m.Run()
	for _, engine := range engines {
		if engine.server == nil {
			continue
		}
		if err := engine.server.stop(); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n%s\n", engine.name, err, engine.server.logTail())
			status = 1
		}
	}
	os.Exit(status)
}

// onEveryEngine runs the test once per engine, each with a client and a task queue of its own. EVERROW_ACCEPTANCE_TARGET names a server
// that runs already (the reference, for checking the tests).
func onEveryEngine(t *testing.T, test func(ctx context.Context, t *testing.T, c client.Client, taskQueue string)) {
	if target := os.Getenv("EVERROW_ACCEPTANCE_TARGET"); target != "" {
		t.Run("target", func(t *testing.T) { connectAndRun(t, target, test) })
		return
	}
	for _, engine := range engines {
		t.Run(engine.name, func(t *testing.T) {
			engine.once.Do(func() { engine.server, engine.failure = start(engine) })
			if engine.failure != nil {
				t.Fatal(engine.failure)
			}
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("log of the server:\n%s", engine.server.logTail())
				}
			})
			connectAndRun(t, engine.server.address, test)
		})
	}
}

func connectAndRun(t *testing.T, address string, test func(context.Context, *testing.T, client.Client, string)) {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	c, err := connect(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	taskQueue := fmt.Sprintf("%s-%08x", strings.ReplaceAll(t.Name(), "/", "-"), rand.Uint32())
	test(ctx, t, c, taskQueue)
}

func connect(ctx context.Context, address string) (client.Client, error) {
	return client.DialContext(ctx, client.Options{HostPort: address, Namespace: namespace, Logger: quiet})
}

func start(engine *engine) (*server, error) {
	folder, err := os.MkdirTemp("", "everrow-"+engine.name+"-")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	command, err := engine.command(folder, port)
	if err != nil {
		return nil, err
	}
	s := &server{
		process: command,
		ended:   make(chan error, 1),
		address: fmt.Sprintf("127.0.0.1:%d", port),
		log:     filepath.Join(folder, "server.log"),
	}
	output, err := os.Create(s.log)
	if err != nil {
		return nil, err
	}
	defer output.Close()
	command.Stdout, command.Stderr = output, output
	if err := command.Start(); err != nil {
		return nil, err
	}
	go func() { s.ended <- command.Wait() }()
	return s, s.answered()
}

// answered returns once the server answers GetSystemInfo, which is a client's first call, and knows the namespace.
func (s *server) answered() error {
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	for {
		err := s.ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case status := <-s.ended:
			s.ended <- status
			return fmt.Errorf("the server ended by itself: %v\n%s", status, s.logTail())
		case <-ctx.Done():
			return fmt.Errorf("no answer in %v: %w\n%s", readyTimeout, err, s.logTail())
		case <-time.After(pollInterval):
		}
	}
}

func (s *server) ask(ctx context.Context) error {
	c, err := connect(ctx, s.address)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	return err
}

func (s *server) stop() error {
	// A server that ended before it was told to says so below.
	_ = s.process.Process.Signal(syscall.SIGTERM)
	select {
	case status := <-s.ended:
		// Clients' faults are not logged as errors: what is, is the server's own.
		if text := s.logText(); strings.Contains(text, "panicked at") || strings.Contains(text, " ERROR ") {
			return fmt.Errorf("the server complains of itself")
		}
		return status
	case <-time.After(stopTimeout):
		_ = s.process.Process.Kill()
		return fmt.Errorf("the server did not end within %v of SIGTERM", stopTimeout)
	}
}

func (s *server) logText() string {
	text, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (s *server) logTail() string {
	text := s.logText()
	return text[max(0, len(text)-logTailBytes):]
}

func embedded(folder string, port int) (*exec.Cmd, error) {
	binary, err := binary()
	if err != nil {
		return nil, err
	}
	data := filepath.Join(folder, "data")
	return exec.Command(binary, "dev", "--ip", "127.0.0.1", "--port", fmt.Sprint(port), "--data", data), nil
}

func cassandra(folder string, port int) (*exec.Cmd, error) {
	contact := os.Getenv("EVERROW_TEST_CASSANDRA")
	if contact == "" {
		return nil, fmt.Errorf("EVERROW_TEST_CASSANDRA=host:port is not set; `cargo xtask cassandra start` gives you one")
	}
	binary, err := binary()
	if err != nil {
		return nil, err
	}
	config := filepath.Join(folder, "everrow.toml")
	keyspace := fmt.Sprintf("everrow_%016x", rand.Uint64())
	text := fmt.Sprintf(cassandraConfig, namespace, port, contact, keyspace)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	if output, err := exec.Command(binary, "schema", "setup", "--config", config).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("schema setup: %w\n%s", err, output)
	}
	return exec.Command(binary, "server", "--config", config), nil
}

const cassandraConfig = `
[cluster]
shards = 4
namespaces = ["%s"]

[frontend]
listen = "127.0.0.1:%d"

[store]
engine = "cassandra"

[store.cassandra]
contact_points = ["%s"]
keyspace = "%s"
replication = 1

[log]
level = "warn"
`

func binary() (string, error) {
	for _, variable := range []string{"EVERROW_BIN", "EVERROW_TEST_BINARY"} {
		if named := os.Getenv(variable); named != "" {
			return named, nil
		}
	}
	target := os.Getenv("CARGO_TARGET_DIR")
	if target == "" {
		target = filepath.Join("..", "..", "target")
	}
	for _, profile := range []string{"release", "debug"} {
		built := filepath.Join(target, profile, "everrow")
		if _, err := os.Stat(built); err == nil {
			return built, nil
		}
	}
	return "", fmt.Errorf("no server binary below %s: set EVERROW_BIN, or build it", target)
}

// freePort finds one below the range that the kernel gives to outgoing connections.
func freePort() (int, error) {
	const low, high, tries = 20_000, 32_000, 200
	for range tries {
		port := low + rand.IntN(high-low)
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return port, listener.Close()
		}
	}
	return 0, fmt.Errorf("no free port")
}
