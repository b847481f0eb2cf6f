"""Something to select: mark the function with V and type :AgentikSend what does this do?"""


def greet(name: str, *, loud: bool = False) -> str:
    text = f"Hello, {name}!"
    return text.upper() if loud else text


print(greet("Neovim"))
