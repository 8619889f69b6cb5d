"""What is seen: the chat page, drawn with Gradio, and the command that puts all layers together.

Knows the app's nouns (chats, status, errors) and no engine. Nothing is imported before it is used: `import
ui` loads no Gradio.
"""
