module netdyno/go-net

go 1.19

require netdyno v0.0.0

replace netdyno => ../_shared/go
