module netdyno/go-http

go 1.19
