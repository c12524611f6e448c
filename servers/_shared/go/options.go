package netdyno

import (
	"encoding/json"
	"os"
	"path"
	"time"
)

// Options are those that every server takes, as the launcher hands them over: protocol/WIRE.md, "Options".
type Options struct {
	Host        string        `json:"host"` // without brackets
	Port        int           `json:"port"`
	Workload    string        `json:"workload"`
	Threads     int           `json:"threads"`
	Backlog     int           `json:"backlog"`
	NoDelay     bool          `json:"nodelay"`
	ReadBuffer  int           `json:"read_buffer"`
	WriteMode   string        `json:"write_mode"`
	Audience    string        `json:"audience"`
	Deliveries  string        `json:"deliveries"`
	ServiceTime time.Duration `json:"service_time_ns"`
	Service     string        `json:"service_kind"`
	MaxFrame    int           `json:"max_frame"`
	OutboxLimit int           `json:"outbox_limit"`
	TLSFile     string        `json:"tls"` // empty: without TLS
	BackendHost string        `json:"backend_host"`
	BackendPort int           `json:"backend_port"`
	PoolSize    int           `json:"pool"`

	Split       bool `json:"-"` // header and body in two writes
	ToAll       bool `json:"-"` // a chat message reaches its sender too
	Single      bool `json:"-"` // a write for each chat message to each recipient
	ServiceKind Kind `json:"-"` // Wait or Burn

	encrypt func(*plainStream) Stream // nil: without TLS
}

func program() string {
	return path.Base(os.Args[0])
}

// OptionsFromLauncher ends the program with exit 2 where it was not started by the launcher.
func OptionsFromLauncher() *Options {
	if len(os.Args) == 2 {
		if options, err := ReadOptions(os.Args[1]); err == nil {
			options.encrypt = loadTLS(options.TLSFile)
			return options
		}
	}
	os.Stderr.WriteString(program() + ": wants its resolved options as one JSON argument: ./netdyno serve " + program() + "\n")
	exit(2)
	return nil
}

// ReadOptions reads one JSON object.
func ReadOptions(resolved string) (*Options, error) {
	options := &Options{}
	if err := json.Unmarshal([]byte(resolved), options); err != nil {
		return nil, err
	}
	options.Split = options.WriteMode == "split"
	options.ToAll = options.Audience == "all"
	options.Single = options.Deliveries == "single"
	options.ServiceKind = Wait
	if options.Service == "cpu" {
		options.ServiceKind = Burn
	}
	return options, nil
}
