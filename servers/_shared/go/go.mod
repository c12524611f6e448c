module netdyno

go 1.19
