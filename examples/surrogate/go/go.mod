module hybridsim.example/surrogate

go 1.22
